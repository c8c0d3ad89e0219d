{{- define "gvList" -}}
# API reference

<!-- Generated from api/v1alpha1 by `make generate`. Do not edit. -->
{{ range . }}
{{ template "gvDetails" . }}
{{- end }}
{{- end -}}
