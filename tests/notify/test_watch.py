"""C11: GPUs that fall free are told with hysteresis and a pause, lost ones when they stay lost. In virtual time."""

from jostle.notify import watch
from jostle.notify.outbox import ShownCards
from tests.notify.receivers import Posts, free_port, http_server
from tests.notify.scene import AT, hook, settings

RULES = settings(free_gpus=2, free_for=60.0, free_pause=1800.0)


def card(index, *, free=True, state="ok"):
    refusal = None if free and state == "ok" else {"code": "stranger", "params": {}}
    return {"index": index, "uuid": f"GPU-{index}", "state": state, "refusal": refusal, "runs": []}


def cards(*free, of=4):
    return [card(index, free=index in free) for index in range(of)]


def told(story, step=10.0, rules=RULES):
    """When it is told, of a story of (seconds, cards or None)."""
    kept, at, now = {}, [], 0.0
    for lasts, seen in story:
        end = now + lasts
        while now < end:
            kept, indices = watch.free(kept, seen, now, rules)
            at += [(now, indices)] if indices else []
            now += step
    return at


def test_c11_enough_free_gpus_are_told_once_when_it_has_lasted():
    assert told([(600, cards()), (6000, cards(1, 3))]) == [(660, [1, 3])]


def test_c11_fewer_than_the_threshold_are_not_told():
    assert told([(6000, cards(1))]) == []


def test_c11_gpus_that_come_and_go_are_not_told_each_time():
    flapping = [(30, cards(0, 1)), (30, cards(0))] * 200
    assert told(flapping) == []
    assert len(told([(120, cards(0, 1)), *flapping])) == 1


def test_c11_told_again_only_after_it_was_otherwise_for_as_long_and_after_the_pause():
    story = [(120, cards(0, 1)), (120, cards()), (120, cards(0, 1)), (120, cards()), (3600, cards(0, 1))]
    assert [at for at, _ in told(story)] == [60, 60 + 1800]
    assert [at for at, _ in told(story, rules={**RULES, "free_pause": 0.0})] == [60, 300, 540]


def test_c11_a_short_dip_is_no_change():
    dip = [(120, cards(0, 1)), (30, cards(0)), (9000, cards(0, 1))]
    assert [at for at, _ in told(dip, rules={**RULES, "free_pause": 0.0})] == [60]


def test_c11_unknown_is_never_good_news():
    assert told([(6000, None)]) == []
    assert told([(50, cards(0, 1)), (10, None), (50, cards(0, 1)), (10, None)] * 20) == []
    after = told([(120, cards(0, 1)), (6000, None), (6000, cards(0, 1))])
    assert [at for at, _ in after] == [60]  # an engine that was away is no change


def test_c11_a_card_with_a_run_of_ours_or_one_that_may_not_be_taken_is_not_free():
    busy = {**card(0), "runs": ["1.1"]}
    assert watch.free_cards([busy, card(1, free=False), card(2, state="lost"), card(3, state="unread"), card(4)]) == [4]


def test_c11_a_clock_that_goes_back_does_not_keep_it_from_being_told():
    kept, _ = watch.free({}, cards(0, 1), 1e9, RULES)
    kept, _ = watch.free(kept, cards(0, 1), 0.0, RULES)
    kept, indices = watch.free(kept, cards(0, 1), 60.0, RULES)
    assert indices == [0, 1]
    kept, _ = watch.free({**kept, "told": False, "told_at": 1e9}, cards(0, 1), 120.0, RULES)
    assert watch.free(kept, cards(0, 1), 120.0 + 1800.0, RULES)[1] == [0, 1]


def lost(story, step=10.0):
    kept, at, now = {}, [], 0.0
    for lasts, seen in story:
        end = now + lasts
        while now < end:
            kept, out = watch.lost(kept, seen, "nvml", now)
            at += [(now, entry["event"], entry["gpu"]) for entry in out]
            now += step
    return at


def out(index, state="lost"):
    return [card(i, state=state if i == index else "ok") for i in range(4)]


def test_c11_a_lost_gpu_is_told_once_when_it_stays_lost():
    assert lost([(60, cards()), (6000, out(2))]) == [(120, "lost", 2)]
    assert lost([(60, cards()), (6000, out(2, "unreadable"))]) == [(120, "unreadable", 2)]
    assert lost([(60, cards()), (6000, cards(of=3))]) == [(120, "lost", 3)]  # the driver does not list it any more


def test_c11_a_gpu_that_flaps_is_told_once_and_again_only_after_it_was_back():
    assert lost([(60, cards()), *[(30, out(2)), (30, cards())] * 50]) == []
    assert len(lost([(60, cards()), (90, out(2)), *[(30, cards()), (70, out(2))] * 20])) == 1
    assert len(lost([(60, cards()), (90, out(2)), (90, cards()), (90, out(2))])) == 2


def test_c11_nothing_is_lost_because_nobody_could_look_or_because_other_devices_are_used():
    assert lost([(60, cards()), (6000, None), (60, cards())]) == []
    kept, _ = watch.lost({}, cards(), "nvml", 0.0)
    for now in range(10, 500, 10):
        kept, told_of = watch.lost(kept, cards(of=2), "sim:2x24", float(now))
        assert told_of == []
    assert lost([(6000, out(1))]) == []  # never seen well


def test_c11_free_gpus_are_told_by_a_channel_once_over_a_restart_and_an_outage(home):
    """What is kept of the watch is kept with the message."""
    port, seen = free_port(), ShownCards(cards(0, 1), "nvml")
    said = {"free_gpus": 2, "gather": 0.0}
    for start in (0, 100, 200):
        outbox = home.outbox(hook(port, "free", "gpu"), **said)
        for now in range(start, start + 100, 10):
            outbox.step(AT + now, seen)
        outbox.close()
    outbox = home.outbox(hook(port, "free", "gpu"), **said)
    with http_server(posts := Posts(), port=port):
        for now in range(300, 8000, 30):
            outbox.step(AT + now, seen)
    (body,) = posts.bodies()
    assert body["data"]["title"] == "[jostle lab-1] 2 GPUs are free: GPU 0,1"
    assert body["data"]["items"][0]["gpus"] == [0, 1]


def test_c11_a_lost_gpu_arrives(home):
    with http_server(posts := Posts()) as port:
        outbox = home.outbox(hook(port, "gpu"), gather=0.0)
        outbox.step(AT, ShownCards(cards(), "nvml"))
        for now in range(10, 200, 10):
            outbox.step(AT + now, ShownCards(out(3), "nvml"))
    (body,) = posts.bodies()
    assert body["data"]["text"].startswith("GPU 3 is lost") and body["data"]["about"] == ["gpu"]
