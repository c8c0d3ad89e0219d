{{- define "type_members" -}}
{{- if eq .Name "metadata" -}}
The object's name, namespace, labels and annotations.
{{- else -}}
{{ .Doc | replace "\n" " " | markdownRenderFieldDoc }}
{{- end -}}
{{- end -}}
{{- define "limits" -}}
{{- $first := true -}}
{{- range .Validation -}}
{{- if not (or (hasPrefix "Optional" .) (hasPrefix "Type:" .)) -}}
{{- if not $first }}<br />{{ end -}}
{{- $first = false -}}
{{- if hasPrefix "Required" . }}required{{ else }}{{ markdownRenderFieldDoc . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
