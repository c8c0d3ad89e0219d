{{/* The name of the manager and of what belongs to it. */}}
{{- define "dbbench.manager" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}-manager
{{- end }}

{{/* The labels by which the manager's pods are found; they never change. */}}
{{- define "dbbench.selector" -}}
app.kubernetes.io/name: dbbench
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: manager
{{- end }}

{{- define "dbbench.labels" -}}
{{ include "dbbench.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "dbbench.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* A role is the cluster's, or the namespace's own. */}}
{{- define "dbbench.rolePrefix" -}}
{{- if eq .Values.scope "Cluster" }}Cluster{{ end }}
{{- end }}

{{/* Metrics need a review of who asks, which only a ClusterRole can grant. */}}
{{- define "dbbench.metrics" -}}
{{- if and .Values.metrics.enabled (eq .Values.scope "Cluster") }}true{{ end }}
{{- end }}

{{/* The service account as a subject of a binding. */}}
{{- define "dbbench.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "dbbench.manager" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
