# What comes next for a pod on a simulated node, and when: {stage, due}. Every stage of pods asks this, and plays if its name is the answer,
# so that exactly one stage is ever next. `due` is a time, a duration, or null for at once. Habits are annotations of the pod.

def habit($name): .metadata.annotations["e2e.plimsoll.dev/" + $name];

# Durations as Go writes them: 1h2m3.5s, 300ms.
def seconds:
  [scan("([0-9.]+)(ms|s|m|h)") | (.[0] | tonumber) * {ms: 0.001, s: 1, m: 60, h: 3600}[.[1]]] | add // 0;

def later($since; $seconds): ($since | fromdate) + $seconds | ceil | todate;

def main: (.status.containerStatuses // [])[0] // {};

# The kubelet's: 10 s, doubled with every restart after the first, 5 min at most.
def backed_off:
  ((habit("back-off") // "10s") | seconds) as $first
  | [$first * pow(2; main.restartCount - 1), 300] | min;

def may_die:
  (.metadata.annotations // {} | has("e2e.plimsoll.dev/dies"))
  and main.restartCount < (habit("times") // "1000000" | tonumber);

def is_job: any(.metadata.ownerReferences[]?; .kind == "Job");

def end_of_life:
  if may_die then
    {stage: ("dies-by-" + habit("dies")), due: later(main.state.running.startedAt; habit("dies-after") // "0s" | seconds)}
  elif is_job then
    {stage: "completes", due: later(main.state.running.startedAt; habit("runs-for") // "0s" | seconds)}
  else empty end;

# Whoever finds a node lost calls its pods not ready; a kubelet that is back calls them what they are.
def called_ready: any(.status.conditions[]?; .type == "Ready" and .status == "True");

def readiness:
  if main.ready and habit("unready") then {stage: "fails-readiness"}
  elif habit("unready") or (main.ready and called_ready) then empty
  elif main.ready then {stage: "becomes-ready"}
  else {stage: "becomes-ready", due: later(main.state.running.startedAt; habit("starts-after") // "0s" | seconds)} end;

def next:
  if .metadata.deletionTimestamp then
    later(.metadata.deletionTimestamp; -(.metadata.deletionGracePeriodSeconds // 0)) as $asked
    | {stage: "gone", due: ([later($asked; habit("stops-after") // "0s" | seconds), .metadata.deletionTimestamp] | min)}
  elif .status.phase == "Pending" then
    main.state.waiting.reason as $waits
    | if $waits == null then
        {stage: (if habit("pull") or habit("pull-error") then "pulls" else "runs" end)}
      elif $waits == "ErrImagePull" then
        {stage: "waits-to-pull", due: "500ms"}
      else
        {
          stage: (if habit("pull-error") then "fails-to-pull" else "runs" end),
          due: (
            if $waits == "ImagePullBackOff" then habit("back-off") // "10s"
            else later(.status.startTime; habit("pull") // "0s" | seconds) end
          )
        }
      end
  elif .status.phase != "Running" then empty
  elif main.state.terminated then
    if main.restartCount == 0 then {stage: "starts-again"} else {stage: "waits-to-start"} end
  elif main.state.waiting then
    {stage: "starts-again", due: later(main.lastState.terminated.finishedAt; backed_off)}
  else
    [readiness, end_of_life] | min_by(.due) // empty
  end;

next
