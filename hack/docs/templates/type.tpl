{{- define "type" -}}
{{- $type := . -}}
{{- if markdownShouldRenderType $type }}

### {{ $type.Name }}

{{ trim $type.Doc }}
{{- if $type.IsAlias }}

Type: {{ markdownRenderTypeLink $type.UnderlyingType }}
{{- end }}
{{- if $type.EnumValues }}
{{ range $type.EnumValues }}
- `{{ .Name }}`{{ if .Doc }}: {{ regexReplaceAll "^[A-Z][A-Za-z]+ " (.Doc | replace "\n" " " | trim) "" | markdownRenderFieldDoc }}{{ end }}
{{- end }}
{{- else if $type.Validation }}
{{ range $type.Validation }}
- {{ markdownRenderFieldDoc . }}
{{- end }}
{{- end }}
{{- if $type.References }}

Used in {{ range $i, $r := $type.SortedReferences }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $r }}{{ end }}.
{{- end }}
{{- if $type.Members }}

| Field | Type | Description | Default | Limits |
| --- | --- | --- | --- | --- |
{{- range $type.Members }}
| `{{ .Name }}` | {{ markdownRenderType .Type }} | {{ template "type_members" . }} | {{ markdownRenderDefault .Default }} | {{ template "limits" . }} |
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
