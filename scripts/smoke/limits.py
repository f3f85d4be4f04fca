"""Limits of a destination and of the account, and a destination that hangs beside a healthy one."""
from datetime import datetime, timedelta, timezone

from .delivery import ARRIVAL_SECONDS, dead_letters, new_ids
from .log import lines_about
from .run import expect, wait_until
from .subscriptions import NAMESPACE, PER_SECOND

RATED_EVENTS = 40
# One event in this many is for the destination that hangs.
HANGING_SHARE = 20
# Messages of a throttled invocation are received again after six minutes.
NEIGHBOURS_SECONDS = 600


def busiest_second(times):
    """The most requests within 1,000 ms."""
    return max(sum(1 for time in times if begin <= time < begin + 1) for begin in times)


def rate_holds(run):
    run.publish(f"{NAMESPACE}/rate", new_ids(RATED_EVENTS))
    arrivals = run.receiver.arrived("/ok/rate", RATED_EVENTS, ARRIVAL_SECONDS)
    times = [arrival.at for arrival in arrivals]
    took, busiest = times[-1] - times[0], busiest_second(times)
    # docs/guides/limits.md, Requests per second: each second has its requests, and within any 1,000 ms there are at most those of two and one more.
    # A receiver on a busy machine stops for a second, and then counts several seconds as one.
    is_exact = not run.given.local_receiver
    expect(busiest <= 2 * PER_SECOND + 1 or not is_exact, f"{busiest} requests within a second with maxPerSecond={PER_SECOND}")
    expect(took >= RATED_EVENTS / PER_SECOND - 2, f"{RATED_EVENTS} requests in {took:.1f} s with maxPerSecond={PER_SECOND}")
    return f"maxPerSecond={PER_SECOND}: {RATED_EVENTS} requests in {took:.1f} s, at most {busiest} within a second"


def neighbours(run):
    hanging = max(1, run.given.events // HANGING_SHARE)
    expected = set(new_ids(run.given.events - hanging))
    run.publish(f"{NAMESPACE}/hanging", new_ids(hanging))
    run.publish(f"{NAMESPACE}/healthy", sorted(expected))

    def missing():
        return expected - {arrival.event for arrival in run.receiver.arrivals("/ok/healthy")}

    wait_until(missing, lambda left: not left, NEIGHBOURS_SECONDS,
               lambda left: f"{len(left)} of {len(expected)} healthy events missing")
    wait_until(lambda: dead_letters(run, "hanging"), lambda found: len(found) >= hanging, NEIGHBOURS_SECONDS,
               lambda found: f"{len(found)} of {hanging} dead letters of the destination that hangs")
    # Lines come some seconds late. Once these are there, so are those of the same invocations that isolated a record.
    wait_until(lambda: lines_about(run, "delivery.delivered"), lambda lines: expected <= {line["event_id"] for line in lines},
               ARRIVAL_SECONDS, lambda lines: f"{len(lines)} lines `delivery.delivered`")
    isolated = len(lines_about(run, "record.isolated"))
    expect(isolated == 0, f"{isolated} records were isolated, as if they had crashed a function")
    times = [arrival.at for arrival in run.receiver.arrivals("/ok/healthy")]
    return (f"{len(expected)} healthy events arrived in {times[-1] - times[0]:.0f} s ({len(times) - len(expected)} more requests); "
            f"{hanging} events of a destination that hangs are dead letters; no record was isolated")


def throttled(run, function):
    """How many invocations Lambda has refused so far. CloudWatch has the last minute or two not yet."""
    began = datetime.fromtimestamp(run.began, timezone.utc)
    asked = {"StartTime": began, "EndTime": began + timedelta(days=1), "Period": 3600, "Statistics": ["Sum"]}
    of_function = {"Namespace": "AWS/Lambda", "MetricName": "Throttles", "Dimensions": [{"Name": "FunctionName", "Value": function}]}
    points = run.client("cloudwatch").get_metric_statistics(**of_function, **asked)["Datapoints"]
    return round(sum(point["Sum"] for point in points))


def throttling(run):
    """Lambda throttles where the account has nothing left. A record that waited for that is no crash."""
    functions = [run.outputs[name] for name in ("DispatchFunctionName", "DeadLetterFunctionName")]
    count = sum(throttled(run, function) for function in functions)
    isolated = len(lines_about(run, "record.isolated"))
    expect(isolated == 0, f"{isolated} records were isolated, as if they had crashed a function; {count} invocations were throttled")
    return f"{count} invocations were throttled by a quota of {run.quota}; no record was isolated"
