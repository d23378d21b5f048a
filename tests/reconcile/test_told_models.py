"""Models that only a pod of their owner's may read: asked once, kept, tried again after an outage and never after a mistake."""

from dataclasses import replace

import pytest

from plimsoll.facts.failure import Failure
from plimsoll.facts.models import lookup
from plimsoll.facts.serving import PodSeen, Stage
from plimsoll.kube.facts_pods import FactsPod
from plimsoll.reconcile.kept import Kept, KeptModel
from plimsoll.reconcile.models import Missing
from plimsoll.reconcile.told_models import MOST_KEPT, RETRIES, told_models
from plimsoll.render.facts_pod import asked_of
from plimsoll_runtime.model import Model, told
from tests.render.building import config, resource
from tests.runtime.test_model import DENSE

SOURCE = "pvc://models/tiny"
ASKED = asked_of(resource(SOURCE).spec, config())
MISSING = {"model.source": Missing("nobody knows it", elsewhere=True)}
ANSWER = told(Model(DENSE, {}))
NOW = 10_000.0


def asked(found=MISSING, *, kept=(), pods=(), replan="", paused=False, now=NOW, readable=ASKED):
    return told_models(found, readable, kept=kept, pods=pods, replan=replan, paused=paused, now=now)


TICKET = asked().wanted[0].ticket


def pod(attempt=1, *, ticket=TICKET, told=None, ended=0.0, failure=None, leaving=False, **seen):
    about = {"stage": Stage.LOADING, **seen}
    return FactsPod(
        seen=PodSeen(name=f"chat-facts-{attempt}", uid=f"u{attempt}", failure=failure, **about),
        ticket=ticket,
        attempt=attempt,
        owner="o",
        told=told,
        ended=ended,
        leaving=leaving,
    )


def ended_by(word, attempt=1, ended=NOW):
    failure = Failure(word, "it says no", "do this")
    return pod(attempt, ended=ended, failure=failure, stage=Stage.FAILED, reason="Error")


def test_a_pod_is_asked_for_once_and_waited_for():
    first = asked()
    (wanted,) = first.wanted
    assert (wanted.attempt, wanted.asked.source) == (1, SOURCE)
    assert first.facts.problem is None
    assert SOURCE in first.facts.reading
    second = asked(pods=(pod(),))
    assert (second.wanted, second.over, second.facts.problem) == ((), (), None)
    assert "chat-facts-1 reads" in second.facts.reading


def test_an_answer_is_kept_and_its_pod_goes_once_it_is():
    answered = pod(told=ANSWER, ended=NOW)
    found = asked(pods=(answered,))
    assert found.facts.model.architecture.hidden == 512
    assert (found.facts.reading, found.facts.problem, found.wanted, found.over) == (None, None, (), ())
    assert found.answered == ((found.kept[0], answered),)
    assert (found.kept[0].asked, found.anew) == (ASKED["model.source"].digest, False)
    later = asked(kept=found.kept, pods=(answered,))
    assert later.facts == found.facts
    assert (later.over, later.answered) == ((answered,), ())
    assert asked(kept=found.kept).wanted == ()


def test_what_is_kept_survives_the_config_map():
    kept = asked(pods=(pod(told=ANSWER, ended=NOW),)).kept
    assert Kept.from_data(Kept(models=kept).beside()).models == kept
    assert Kept.from_data({"models.json": "[{]"}).models == ()


def test_what_this_release_cannot_read_any_more_is_read_anew():
    old = KeptModel(asked=ASKED["model.source"].digest, source=SOURCE, revision=None, text="{}")
    assert [one.attempt for one in asked(kept=(old,)).wanted] == [1]


@pytest.mark.parametrize("attempt", [1, 2, 3, 4])
def test_an_outage_is_tried_again_later_and_later(attempt):
    wait = RETRIES[min(attempt, 3) - 1]
    before = asked(pods=(ended_by("Download", attempt),), now=NOW + wait - 1)
    assert (before.wanted, before.again_seconds) == ((), 1.0)
    assert "by itself" in before.facts.problem
    after = asked(pods=(ended_by("Download", attempt),), now=NOW + wait)
    assert [one.attempt for one in after.wanted] == [attempt + 1]
    assert after.facts.problem is None


def test_a_pod_that_was_killed_counts_as_an_outage():
    lost = pod(ended=NOW, stage=Stage.FAILED, reason="Evicted", message="the node had no memory")
    found = asked(pods=(lost,), now=NOW + 5)
    assert found.again_seconds == RETRIES[0] - 5
    assert "Evicted" in found.facts.problem


def test_a_pod_whose_node_died_under_it_does_not_hold_up_the_next():
    lost = pod(
        ended=NOW, leaving=True, stage=Stage.LEAVING, reason="DeletionByTaintManager", message="no node"
    )
    waits = asked(pods=(lost,), now=NOW + 5)
    assert (waits.again_seconds, waits.wanted) == (RETRIES[0] - 5, ())
    assert "DeletionByTaintManager" in waits.facts.problem
    after = asked(pods=(lost,), now=NOW + RETRIES[0])
    assert [one.attempt for one in after.wanted] == [2]
    reads = asked(pods=(lost, pod(2)), now=NOW + 1e6)
    assert (reads.over, reads.wanted) == ((), ())
    assert "chat-facts-2 reads" in reads.facts.reading
    assert asked(pods=(lost, pod(2, told=ANSWER, ended=NOW))).facts.model.architecture.hidden == 512


@pytest.mark.parametrize("word", ["GatedModel", "ModelNotFound", "BadCheckpoint", "UnknownArchitecture"])
def test_a_mistake_waits_for_a_person(word):
    found = asked(pods=(ended_by(word),), now=NOW + 1e6)
    assert (found.wanted, found.over, found.again_seconds) == ((), (), None)
    assert word in found.facts.problem
    assert "it says no; do this" in found.facts.problem
    assert "plimsoll.dev/replan" in found.facts.problem


def test_a_person_who_asks_again_gets_another_pod():
    found = asked(pods=(ended_by("GatedModel"),), replan="2")
    assert [one.attempt for one in found.wanted] == [1]
    assert [one.seen.name for one in found.over] == ["chat-facts-1"]


OTHER = told(Model({**DENSE, "hidden_size": 1024}, {}))


def test_a_person_who_asks_again_has_a_known_model_read_anew_and_the_old_facts_count_until_then():
    first = asked(pods=(pod(told=ANSWER, ended=NOW),))
    again = asked(kept=first.kept, replan="2")
    (wanted,) = again.wanted
    assert (wanted.attempt, again.facts, again.kept) == (1, first.facts, first.kept)
    under_way = pod(ticket=wanted.ticket)
    reads = asked(kept=first.kept, replan="2", pods=(under_way,))
    assert (reads.facts, reads.wanted, reads.over, reads.answered) == (first.facts, (), (), ())
    answered = pod(ticket=wanted.ticket, told=OTHER, ended=NOW)
    new = asked(kept=first.kept, replan="2", pods=(answered,))
    assert new.facts.model.architecture.hidden == 1024
    assert (new.answered, new.anew, len(new.kept)) == (((new.kept[0], answered),), True, 1)
    done = asked(kept=new.kept, replan="2", pods=(answered,))
    assert (done.facts, done.wanted, done.over, done.anew) == (new.facts, (), (answered,), False)
    assert asked(kept=new.kept).wanted == (), "who takes the annotation away asks for nothing"


def test_a_model_that_is_still_the_same_asks_for_nothing_else():
    first = asked(pods=(pod(told=ANSWER, ended=NOW),))
    ticket = asked(kept=first.kept, replan="2").wanted[0].ticket
    same = asked(kept=first.kept, replan="2", pods=(pod(ticket=ticket, told=ANSWER, ended=NOW),))
    assert (same.facts, same.anew, same.wanted) == (first.facts, False, ())
    assert same.kept[0].ticket == ticket


def test_a_reading_anew_that_fails_leaves_what_was_told_before():
    first = asked(pods=(pod(told=ANSWER, ended=NOW),))
    ticket = asked(kept=first.kept, replan="2").wanted[0].ticket
    failed = replace(ended_by("GatedModel"), ticket=ticket)
    found = asked(kept=first.kept, replan="2", pods=(failed,))
    assert (found.facts, found.kept, found.wanted, found.over) == (first.facts, first.kept, (), ())
    cut = replace(ended_by("Download"), ticket=ticket)
    later = asked(kept=first.kept, replan="2", pods=(cut,), now=NOW + RETRIES[0])
    assert (later.facts, [one.attempt for one in later.wanted]) == (first.facts, [2])
    away = {"model.source": Missing("the hub is away")}
    assert asked(away, kept=first.kept, replan="2").wanted == ()
    assert asked(kept=first.kept, replan="2", paused=True).wanted == ()


def test_a_message_that_nobody_can_read_waits_for_a_person():
    found = asked(pods=(pod(told="what?", ended=NOW),), now=NOW + 1e6)
    assert (found.wanted, found.kept) == ((), ())
    assert "no JSON" in found.facts.problem


def test_only_the_last_attempt_stays():
    found = asked(pods=(ended_by("Download"), pod(2)))
    assert [one.attempt for one in found.over] == [1]
    assert "chat-facts-2 reads" in found.facts.reading


def test_a_pod_that_cannot_start_says_why():
    secret = pod(stage=Stage.FAILED, reason="CreateContainerConfigError", message='secret "hub" not found')
    found = asked(pods=(secret,))
    assert 'secret "hub" not found' in found.facts.problem
    assert (found.wanted, found.over) == ((), ())


def test_a_pod_without_a_node_is_waited_for_and_told():
    found = asked(pods=(pod(stage=Stage.UNSCHEDULED, message="0/3 nodes are available"),))
    assert "0/3 nodes are available" in found.facts.reading


def test_nothing_is_made_while_it_is_paused():
    assert asked(paused=True).wanted == ()
    assert "spec.paused" in asked(paused=True).facts.reading
    late = asked(pods=(ended_by("Download"),), paused=True, now=NOW + 1e6)
    assert late.wanted == ()


def test_what_the_operator_reads_itself_needs_no_pod_and_leaves_none():
    known = lookup("Qwen/Qwen3-8B")
    found = asked({"model.source": known}, pods=(pod(),))
    assert found.facts.model is known
    assert [one.attempt for one in found.over] == [1]


def test_a_problem_that_no_pod_solves_is_told_as_it_is():
    found = asked({"model.source": Missing("no such repository")})
    assert (found.facts.problem, found.wanted) == ("no such repository", ())
    nobody = asked(readable={})
    assert (nobody.facts.problem, nobody.wanted) == ("nobody knows it", ())


@pytest.mark.parametrize("elsewhere", [True, False], ids=["refused", "outage"])
def test_what_is_kept_holds_whatever_keeps_the_operator_from_asking_itself(elsewhere):
    answered = asked(pods=(pod(told=ANSWER, ended=NOW),))
    found = asked({"model.source": Missing("the hub is away", elsewhere=elsewhere)}, kept=answered.kept)
    assert found.facts == answered.facts
    assert (found.kept, found.wanted) == (answered.kept, ())


def test_an_answer_that_is_not_kept_yet_holds_in_an_outage_and_a_reading_goes_on():
    away = {"model.source": Missing("the hub is away")}
    answered = pod(told=ANSWER, ended=NOW)
    found = asked(away, pods=(answered,))
    assert (found.facts.model.architecture.hidden, found.over) == (512, ())
    assert [one for _, one in found.answered] == [answered]
    reads = asked(away, pods=(pod(),))
    assert (reads.facts.problem, reads.wanted, reads.over) == ("the hub is away", (), ())


def test_of_two_models_the_one_that_fails_is_told_and_the_other_is_read():
    spec = resource(SOURCE, speculative={"method": "draft", "model": "acme/small", "tokens": 3}).spec
    readable = asked_of(spec, config())
    found = asked({**MISSING, "speculative.model": Missing("no such draft")}, readable=readable)
    assert found.facts.problem == "no such draft"
    assert len(found.wanted) == 1


def test_who_goes_back_finds_the_model_known_and_the_oldest_is_forgotten():
    others = tuple(
        KeptModel(asked=f"{number}", source="s", revision=None, text=ANSWER) for number in range(MOST_KEPT)
    )
    found = asked(kept=others, pods=(pod(told=ANSWER, ended=NOW),))
    assert len(found.kept) == MOST_KEPT
    assert found.kept[0].source == SOURCE
    assert found.kept[1:] == others[:-1]


def test_a_pod_that_leaves_is_not_taken_away_twice():
    assert asked(pods=(replace(pod(ticket="old"), leaving=True),)).over == ()
