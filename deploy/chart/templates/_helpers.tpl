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
{{- if not (has .Values.mode (list "second" "default" "both" "volcano" "shards" "koordinator")) -}}
{{- fail (printf "mode %q must be one of second, default, both, volcano, shards, koordinator" .Values.mode) -}}
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

{{/* The release has a lease of its own in every mode, so that replicas of two modes never serve one name. In
kube-scheduler's place that of kube-scheduler is taken besides, so that never both lead. */}}
{{- define "fairlead.ownLease" -}}
{{ .Release.Namespace }}/{{ include "fairlead.fullname" . }}
{{- end -}}
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
{{- if has (include "fairlead.mode" .) (list "both" "volcano" "shards") -}}true{{- end -}}
{{- end -}}

{{/* What of the configuration is not taken over while a process runs: another value of it makes new pods. */}}
{{- define "fairlead.atStart" -}}
{{- $config := dict -}}
{{- if .Values.config -}}
{{- $config = fromYaml .Values.config -}}
{{- end -}}
{{- $lease := list (include "fairlead.mode" .) .Values.leaderElect (include "fairlead.leaseName" .) -}}
{{- list $lease .Values.clientConnection $config.leaderElection $config.clientConnection | toJson | sha256sum -}}
{{- end -}}

{{- define "fairlead.image" -}}
{{- .Values.image.repository -}}
{{- if .Values.image.digest -}}@{{ .Values.image.digest }}{{- else -}}:{{ .Values.image.tag | default .Chart.AppVersion }}{{- end -}}
{{- end -}}
