{{- define "quarry.selector" -}}
app.kubernetes.io/name: quarry
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "quarry.labels" -}}
{{ include "quarry.selector" . }}
app.kubernetes.io/version: {{ .root.Values.image.tag | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{- define "quarry.secret" -}}
{{ .Values.secretName | default .Values.existingSecret }}
{{- end }}

{{- /* Where a pod runs, and what it may do: the same for every component. */ -}}
{{- define "quarry.placement" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile:
    type: RuntimeDefault
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .settings.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "quarry.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "quarry.selector" . | nindent 8 }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "quarry.selector" . | nindent 8 }}
{{- end }}

{{- define "quarry.image" -}}
image: {{ .Values.image.repository }}:{{ .Values.image.tag }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- define "quarry.locked" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{- define "quarry.environment" -}}
envFrom:
  - configMapRef:
      name: {{ .Release.Name }}
  - secretRef:
      name: {{ include "quarry.secret" . }}
{{- with .Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Rows are in PostgreSQL, file contents in S3: nothing here has to last. */ -}}
{{- define "quarry.mounts" -}}
volumeMounts:
  - name: data
    mountPath: /data
  - name: tmp
    mountPath: /tmp
{{- end }}

{{- define "quarry.volumes" -}}
volumes:
  - name: data
    emptyDir: {}
  - name: tmp
    emptyDir: {}
{{- end }}

{{- /* The pod of a command that ends: migrate, backup. */ -}}
{{- define "quarry.command" -}}
metadata:
  labels:
    {{- include "quarry.labels" . | nindent 4 }}
spec:
  restartPolicy: Never
  {{- include "quarry.placement" . | nindent 2 }}
  containers:
    - name: quarry
      {{- include "quarry.image" .root | nindent 6 }}
      args:
        {{- toYaml .args | nindent 8 }}
      {{- include "quarry.environment" .root | nindent 6 }}
      resources:
        requests:
          cpu: 100m
          memory: 128Mi
        limits:
          memory: 1Gi
      {{- include "quarry.locked" . | nindent 6 }}
      {{- include "quarry.mounts" . | nindent 6 }}
  {{- include "quarry.volumes" . | nindent 2 }}
{{- end }}

{{- define "quarry.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels:
    {{- include "quarry.labels" . | nindent 4 }}
spec:
  {{- if not .settings.autoscaling.enabled }}
  replicas: {{ .settings.replicas }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "quarry.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "quarry.labels" . | nindent 8 }}
      annotations:
        # Pods are replaced when a setting changes.
        checksum/settings: {{ include "quarry.settings" .root | sha256sum }}
        {{- with .settings.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      # Requests and jobs in progress end within ten seconds of SIGTERM.
      terminationGracePeriodSeconds: 20
      serviceAccountName: {{ .root.Release.Name }}
      {{- include "quarry.placement" . | nindent 6 }}
      {{- include "quarry.spread" . | nindent 6 }}
      containers:
        - name: quarry
          {{- include "quarry.image" .root | nindent 10 }}
          args: [serve, --only, {{ .component }}]
          envFrom:
            - configMapRef:
                name: {{ .root.Release.Name }}
            - secretRef:
                name: {{ include "quarry.secret" .root }}
          env:
            - name: POD_IP
              valueFrom:
                fieldRef:
                  fieldPath: status.podIP
            {{- if eq .component "worker" }}
            {{- if .root.Values.renderer.enabled }}
            - name: QUARRY_RENDERER
              value: http://{{ .root.Release.Name }}-renderer:9222
            - name: QUARRY_RENDERER_PROXY_HOST
              value: $(POD_IP)
            {{- end }}
            {{- end }}
            {{- with .root.Values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            - name: http
              containerPort: {{ .port }}
            - name: metrics
              containerPort: 9464
          startupProbe:
            httpGet:
              path: /readyz
              port: http
            periodSeconds: 2
            # The first process migrates if no Job has done it: give it ten minutes.
            failureThreshold: 300
          readinessProbe:
            httpGet:
              path: /readyz
              port: http
            periodSeconds: 5
            timeoutSeconds: 3
          livenessProbe:
            httpGet:
              path: /healthz
              port: http
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          lifecycle:
            preStop:
              exec:
                # Until the endpoints of the Service no longer contain this pod.
                command: [sleep, "3"]
          resources:
            {{- toYaml .settings.resources | nindent 12 }}
          {{- include "quarry.locked" . | nindent 10 }}
          {{- include "quarry.mounts" . | nindent 10 }}
      {{- include "quarry.volumes" . | nindent 6 }}
{{- end }}

{{- define "quarry.disruption-budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels:
    {{- include "quarry.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "quarry.selector" . | nindent 6 }}
{{- end }}

{{- define "quarry.autoscaler" -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels:
    {{- include "quarry.labels" . | nindent 4 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ .root.Release.Name }}-{{ .component }}
  minReplicas: {{ .settings.autoscaling.minReplicas }}
  maxReplicas: {{ .settings.autoscaling.maxReplicas }}
  metrics:
    {{- toYaml .settings.autoscaling.metrics | nindent 4 }}
{{- end }}

{{- define "quarry.settings" -}}
{{- toYaml .Values.settings }}
QUARRY_METRICS_PORT: "9464"
{{- end }}
