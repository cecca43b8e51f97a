{{- define "fairlead.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "fairlead.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "fairlead.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "fairlead.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "fairlead.mode" -}}
{{- if not (has .Values.mode (list "second" "default" "volcano" "shards" "koordinator")) -}}
{{- fail (printf "mode %q is none of second, default, volcano, shards, koordinator" .Values.mode) -}}
{{- end -}}
{{- .Values.mode -}}
{{- end -}}

{{- define "fairlead.selector" -}}
app.kubernetes.io/name: {{ include "fairlead.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fairlead.labels" -}}
{{ include "fairlead.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "fairlead.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "fairlead.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "fairlead.priorityClass" -}}
{{- if .Values.priorityClassName -}}
{{- .Values.priorityClassName -}}
{{- else if .Values.priorityClass.create -}}
{{- printf "%s-%s" .Release.Namespace (include "fairlead.fullname" .) -}}
{{- end -}}
{{- end -}}

{{/* In kube-scheduler's place its own lease is taken, so that never both lead. */}}
{{- define "fairlead.leaseName" -}}
{{- if eq (include "fairlead.mode" .) "default" -}}kube-scheduler{{- else -}}{{ include "fairlead.fullname" . }}{{- end -}}
{{- end -}}
{{- define "fairlead.leaseNamespace" -}}
{{- if eq (include "fairlead.mode" .) "default" -}}kube-system{{- else -}}{{ .Release.Namespace }}{{- end -}}
{{- end -}}
{{- define "fairlead.elects" -}}
{{- if and .Values.leaderElect (ne (include "fairlead.mode" .) "shards") -}}true{{- end -}}
{{- end -}}
{{- define "fairlead.rounds" -}}
{{- if has (include "fairlead.mode" .) (list "volcano" "shards") -}}true{{- end -}}
{{- end -}}
