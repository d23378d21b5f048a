"""Stages of pods: the statuses that a kubelet writes and the events it tells, from the image pull to the end.

The first container does what the pod's habits say; the others run beside it.
"""

from __future__ import annotations

from typing import Final

from cluster.stages.stage import Event, Stage

_HABITS: Final = '{{ $habits := or .metadata.annotations dict }}{{ $now := now | date "2006-01-02T15:04:05Z07:00" | Quote }}'
_FIRST: Final = "{{ $first := index .status.containerStatuses 0 }}"
_MAIN: Final = "(index .spec.containers 0).name"
_IMAGE: Final = "(index .spec.containers 0).image"
_POD: Final = '(printf "%s_%s(%s)" .metadata.name .metadata.namespace .metadata.uid)'
_BACK_OFF: Final = """
{{ $wait := int64 10 }}{{ with index $habits "e2e.plimsoll.dev/back-off" }}
{{ $number := regexFind "[0-9]+" . | int64 }}
{{ if hasSuffix "ms" . }}{{ $wait = div $number 1000 }}{{ else if hasSuffix "m" . }}{{ $wait = mul $number 60 }}{{ else }}{{ $wait = $number }}{{ end }}
{{ end }}
{{ range until (sub (atoi (toString $first.restartCount)) 1 | int) }}{{ $wait = min 300 (mul $wait 2) }}{{ end }}
"""


def _conditions(*, ready: bool, reason: str = "ContainersNotReady") -> str:
    """Of a patch that is merged by type: what is no longer so is said to be nothing."""
    message = "null"
    if not ready and reason == "ContainersNotReady":
        message = "'containers with unready status: [{{ (index .spec.containers 0).name }}]'"
    why = f"reason: {'null' if ready else reason}, message: {message}"
    return f"""
observedGeneration: {{{{ or .metadata.generation 1 }}}}
conditions:
- {{type: PodReadyToStartContainers, status: "True", lastTransitionTime: {{{{ $now }}}}}}
- {{type: Initialized, status: "True", lastTransitionTime: {{{{ $now }}}}}}
- {{type: Ready, status: "{ready}", lastTransitionTime: {{{{ $now }}}}, {why}}}
- {{type: ContainersReady, status: "{ready}", lastTransitionTime: {{{{ $now }}}}, {why}}}
"""


def _containers(
    state: str,
    *,
    ready: str = "false",
    started: str = "false",
    restarts: str = "{{ or $old.restartCount 0 }}",
    last: str = "{{ toJson (or $old.lastState dict) }}",
    every: bool = False,
) -> str:
    """All container statuses, as a patch replaces them whole: the first one's, or `every` one's, is new."""
    kept = "false" if every else "and $old (gt $at 0)"
    return f"""
containerStatuses:
{{{{ range $at, $container := .spec.containers }}}}
{{{{ $old := dict }}}}{{{{ with $.status.containerStatuses }}}}{{{{ $old = index . $at }}}}{{{{ end }}}}
{{{{ if {kept} }}}}
- {{{{ toJson $old }}}}
{{{{ else }}}}
- name: {{{{ $container.name | Quote }}}}
  image: {{{{ $container.image | Quote }}}}
  imageID: ""
  containerID: {{{{ printf "containerd://%s" (sha256sum (printf "%s %s %v" $.metadata.uid $container.name $old.restartCount)) | Quote }}}}
  restartCount: {restarts}
  ready: {ready}
  started: {started}
  state: {state}
  lastState: {last}
{{{{ end }}}}
{{{{ end }}}}
"""


_ADDRESSES: Final = """
{{ with NodeIPWith .spec.nodeName }}
hostIP: {{ . | Quote }}
hostIPs: [{ip: {{ . | Quote }}}]
{{ end }}
{{ if not .status.podIP }}
{{ with PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) .metadata.uid .metadata.name .metadata.namespace }}
podIP: {{ . | Quote }}
podIPs: [{ip: {{ . | Quote }}}]
{{ end }}
{{ end }}
{{ if not .status.startTime }}
startTime: {{ $now }}
{{ end }}
"""
_INIT: Final = """
{{ if .spec.initContainers }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  restartCount: 0
  ready: true
{{ if eq ( or .restartPolicy "" ) "Always" }}
  started: true
  state: {running: {startedAt: {{ $now }}}}
{{ else }}
  started: false
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now }}, finishedAt: {{ $now }}}}
{{ end }}
{{ end }}
{{ end }}
"""
_GATES: Final = """
{{ range .spec.readinessGates }}
- {type: {{ .conditionType | Quote }}, status: "True", lastTransitionTime: {{ $now }}}
{{ end }}
"""


def _waiting(reason: str, message: str) -> str:
    return f"{{waiting: {{reason: {reason}, message: {{{{ {message} | Quote }}}}}}}}"


_RUNNING: Final = "{running: {startedAt: {{ $now }}}}"
_LATER_READY: Final = (
    'or (index $habits "e2e.plimsoll.dev/starts-after") (index $habits "e2e.plimsoll.dev/unready")'
)
_STARTS_READY: Final = f"{{{{ not (and (eq $at 0) ({_LATER_READY})) }}}}"
_STARTED: Final = '{{ not (and $container.startupProbe (index $habits "e2e.plimsoll.dev/starts-after")) }}'
_READY_OR_NOT: Final = (
    f"{{{{ if {_LATER_READY} }}}}"
    + _conditions(ready=False)
    + "{{ else }}"
    + _conditions(ready=True)
    + "{{ end }}"
    + _GATES
)
_PULL_ERROR: Final = '(index .metadata.annotations "e2e.plimsoll.dev/pull-error")'
_STARTED_EVENTS: Final = (
    Event("Normal", "Created", f'printf "Created container: %s" {_MAIN}'),
    Event("Normal", "Started", f'printf "Started container %s" {_MAIN}'),
)


def _terminated(code: str, reason: str) -> str:
    return f"""{{terminated: {{exitCode: {code}, reason: {reason}, message: {{{{ or (index $habits "e2e.plimsoll.dev/message") "" | Quote }}}},
    startedAt: {{{{ $old.state.running.startedAt | Quote }}}}, finishedAt: {{{{ $now }}}}, containerID: {{{{ or $old.containerID "" | Quote }}}}}}}}"""


def _dies(name: str, *, code: str, reason: str, events: tuple[Event, ...] = ()) -> Stage:
    """The first container ends; the pod with it where it is not to be started again."""
    ended = _terminated("{{ $code }}", "{{ $reason }}")
    return Stage(
        kind="Pod",
        name=f"dies-by-{name}",
        events=events,
        status=f'{_HABITS}{_FIRST}{{{{ $code := "{code}" }}}}'
        + (
            '{{ with index $habits "e2e.plimsoll.dev/exit-code" }}{{ $code = . }}{{ end }}'
            if name == "exit"
            else ""
        )
        + f'{{{{ $reason := "{reason}" }}}}{{{{ if eq $code "0" }}}}{{{{ $reason = "Completed" }}}}{{{{ end }}}}\n'
        + '{{ if or (eq .spec.restartPolicy "Never") (and (eq .spec.restartPolicy "OnFailure") (eq $code "0")) }}\n'
        + 'phase: {{ if eq $code "0" }}Succeeded{{ else }}Failed{{ end }}\n'
        + _conditions(ready=False, reason='Pod{{ if eq $code "0" }}Completed{{ else }}Failed{{ end }}')
        + _containers(ended, every=True)
        + "{{ else }}"
        + _conditions(ready=False)
        + _containers(ended)
        + "{{ end }}",
    )


POD_STAGES: Final = (
    Stage(
        kind="Pod",
        name="pulls",
        events=(Event("Normal", "Pulling", f'printf "Pulling image \\"%s\\"" {_IMAGE}'),),
        status=_HABITS
        + "phase: Pending\n"
        + _ADDRESSES
        + _conditions(ready=False)
        + _containers("{waiting: {reason: ContainerCreating}}"),
    ),
    Stage(
        kind="Pod",
        name="fails-to-pull",
        events=(
            Event("Warning", "Failed", f'printf "Failed to pull image \\"%s\\": %s" {_IMAGE} {_PULL_ERROR}'),
            Event("Warning", "Failed", '"Error: ErrImagePull"'),
        ),
        status=_HABITS + _containers(_waiting("ErrImagePull", 'index $habits "e2e.plimsoll.dev/pull-error"')),
    ),
    Stage(
        kind="Pod",
        name="waits-to-pull",
        events=(
            Event("Normal", "BackOff", f'printf "Back-off pulling image \\"%s\\"" {_IMAGE}'),
            Event("Warning", "Failed", '"Error: ImagePullBackOff"'),
        ),
        status=_HABITS
        + _FIRST
        + _containers(
            _waiting(
                "ImagePullBackOff",
                'printf "Back-off pulling image \\"%s\\": ErrImagePull: %s" $container.image'
                " $first.state.waiting.message",
            )
        ),
    ),
    # Without events: an estate of a thousand pods that start at once would be told three of each.
    Stage(
        kind="Pod",
        name="runs",
        status=_HABITS
        + "phase: Running\n"
        + _ADDRESSES
        + _READY_OR_NOT
        + _INIT
        + _containers(
            _RUNNING,
            ready=_STARTS_READY,
            started=_STARTED,
            every=True,
        ),
    ),
    Stage(
        kind="Pod",
        name="becomes-ready",
        status=_HABITS
        + _FIRST
        + _conditions(ready=True)
        + _containers("{{ toJson $first.state }}", ready="true", started="true"),
    ),
    Stage(
        kind="Pod",
        name="fails-readiness",
        events=(
            Event("Warning", "Unhealthy", '"Readiness probe failed: HTTP probe failed with statuscode: 503"'),
        ),
        status=_HABITS
        + _FIRST
        + _conditions(ready=False)
        + _containers("{{ toJson $first.state }}", ready="false", started="true"),
    ),
    _dies("exit", code="1", reason="Error"),
    _dies("oom", code="137", reason="OOMKilled"),
    _dies(
        "liveness",
        code="137",
        reason="Error",
        events=(
            Event("Warning", "Unhealthy", '"Liveness probe failed: HTTP probe failed with statuscode: 503"'),
            Event(
                "Normal", "Killing", f'printf "Container %s failed liveness probe, will be restarted" {_MAIN}'
            ),
        ),
    ),
    _dies(
        "startup",
        code="137",
        reason="Error",
        events=(
            Event("Warning", "Unhealthy", '"Startup probe failed: HTTP probe failed with statuscode: 503"'),
            Event(
                "Normal", "Killing", f'printf "Container %s failed startup probe, will be restarted" {_MAIN}'
            ),
        ),
    ),
    Stage(
        kind="Pod",
        name="dies-by-eviction",
        events=(
            Event(
                "Warning",
                "Evicted",
                f'printf "The node was low on resource: memory. Threshold quantity: 100Mi, available: 96Mi. '
                f'Container %s was using 1Gi, request is 0, has larger consumption of memory. " {_MAIN}',
            ),
        ),
        status=_HABITS + _FIRST + "phase: Failed\nreason: Evicted\n" + "message: {{ printf "
        '"The node was low on resource: memory. Threshold quantity: 100Mi, available: 96Mi. '
        'Container %s was using 1Gi, request is 0, has larger consumption of memory. "'
        f" {_MAIN} | Quote }}}}\n"
        + _conditions(ready=False, reason="PodFailed")
        + "- {type: DisruptionTarget, status: 'True', reason: TerminationByKubelet, lastTransitionTime: {{ $now }},"
        " message: 'The node was low on resource: memory.'}\n"
        + _containers(_terminated("137", "Error"), every=True),
    ),
    Stage(
        kind="Pod",
        name="waits-to-start",
        events=(
            Event(
                "Warning",
                "BackOff",
                f'printf "Back-off restarting failed container %s in pod %s" {_MAIN} {_POD}',
            ),
        ),
        status=_HABITS
        + _FIRST
        + _BACK_OFF
        + _conditions(ready=False)
        + _containers(
            _waiting(
                "CrashLoopBackOff",
                'printf "back-off %s restarting failed container=%s pod=%s_%s(%s)" (duration $wait) $container.name'
                " $.metadata.name $.metadata.namespace $.metadata.uid",
            ),
            last="{{ toJson $first.state }}",
        ),
    ),
    Stage(
        kind="Pod",
        name="starts-again",
        events=_STARTED_EVENTS,
        status=_HABITS
        + _FIRST
        + _READY_OR_NOT
        + _containers(
            _RUNNING,
            ready=_STARTS_READY,
            started=_STARTED,
            restarts="{{ add 1 (atoi (toString $old.restartCount)) }}",
            last="{{ if $first.state.terminated }}{{ toJson $first.state }}{{ else }}{{ toJson $first.lastState }}{{ end }}",
        ),
    ),
    Stage(
        kind="Pod",
        name="completes",
        status=_HABITS
        + _FIRST
        + "phase: Succeeded\n"
        + _conditions(ready=False, reason="PodCompleted")
        + _containers(_terminated("0", "Completed"), every=True),
    ),
    Stage(kind="Pod", name="gone", delete=True),
)
