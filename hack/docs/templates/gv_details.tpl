{{- define "gvDetails" -}}
## {{ .GroupVersionString }}

{{ trim .Doc }}

Start at {{ range .SortedKinds }}{{ $.TypeForKind . | markdownRenderTypeLink }}{{ end }}. A field without a default is unset where it is left out.
{{ range .SortedTypes }}
{{- template "type" . }}
{{- end }}
{{- end -}}
