# What comes next for a simulated node, and when: {stage, due}, as for pods. Habits are labels of the node.

def habit($name): .metadata.labels["e2e.plimsoll.dev/" + $name];

def seconds:
  [scan("([0-9.]+)(ms|s|m|h)") | (.[0] | tonumber) * {ms: 0.001, s: 1, m: 60, h: 3600}[.[1]]] | add // 0;

def is_ready: any(.status.conditions[]?; .type == "Ready" and .status == "True");

def next:
  .metadata.annotations["e2e.plimsoll.dev/reclaimed-at"] as $announced
  | if $announced then {stage: "reclaimed", due: $announced}
    elif is_ready | not then {stage: "ready"}
    elif habit("reclaimed-after") then
      {
        stage: "reclaim-announced",
        due: ((.metadata.creationTimestamp | fromdate) + (habit("reclaimed-after") | seconds) | ceil | todate)
      }
    else empty end;

next
