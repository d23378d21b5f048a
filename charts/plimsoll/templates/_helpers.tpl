{{- define "plimsoll.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "plimsoll.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "plimsoll.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "plimsoll.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "plimsoll.selector" -}}
app.kubernetes.io/name: {{ include "plimsoll.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "plimsoll.labels" -}}
{{ include "plimsoll.selector" . }}
app.kubernetes.io/component: operator
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "plimsoll.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "plimsoll.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "plimsoll.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The admin's file, whole. */}}
{{- define "plimsoll.config" -}}
{{- /* The supervisor comes with the operator's own image, unless the admin names another. */ -}}
{{- $brings := dict "registry" (dict "runtimeImage" (include "plimsoll.image" .)) -}}
{{- merge (dict "apiVersion" "plimsoll.dev/v1alpha1" "kind" "OperatorConfig") (deepCopy (.Values.config | default dict)) $brings | toYaml -}}
{{- end -}}

{{- define "plimsoll.webhook" -}}
{{- printf "%s-webhook" (include "plimsoll.fullname" .) -}}
{{- end -}}

{{/* Objects outside namespaces need a name that no other release has. */}}
{{- define "plimsoll.webhookConfiguration" -}}
{{- printf "%s-%s" .Release.Namespace (include "plimsoll.webhook" .) -}}
{{- end -}}

{{- define "plimsoll.webhookSecret" -}}
{{- .Values.webhook.existingSecret | default (include "plimsoll.webhook" .) -}}
{{- end -}}

{{/* The namespaces that are watched, of which the selector may leave some out. */}}
{{- define "plimsoll.webhookNamespaces" -}}
{{- $selector := deepCopy .Values.webhook.namespaceSelector -}}
{{- with .Values.namespaces -}}
{{- $only := dict "key" "kubernetes.io/metadata.name" "operator" "In" "values" . -}}
{{- $_ := set $selector "matchExpressions" (append ($selector.matchExpressions | default list) $only) -}}
{{- end -}}
{{- with $selector }}{{ toYaml . }}{{ end -}}
{{- end -}}
