//! Checks on every request: that it is allowed, due, and carries its events unchanged.

use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::delivery::{Batching, Delivery, Hold};
use delivery::request::Request;
use delivery::subscription::profile::LIFETIME_MAX_MS;
use uuid::Uuid;

use super::endpoints::{Answer, answered};
use super::faults::Fault;
use super::late::LateAnswer;
use super::ledger::Seen;
use super::publish::marked;
use super::queued::Queued;
use super::rules::Expected;
use super::sinks::{Route, address};
use super::trace::request_digest;
use super::world::Inner;

/// The state of a delivery in one message of the running invocation.
pub(crate) struct Base {
    pub(crate) attempts: u32,
    pub(crate) due_ms: u64,
    pub(crate) published_ms: u64,
    pub(crate) first_ms: Option<u64>,
    pub(crate) batching: Batching,
    pub(crate) abandoned: bool,
    pub(crate) hold: Hold,
}

impl Base {
    fn new(held: &Queued, delayed_ms: u64) -> Self {
        let hold = held.hold();
        match held.carried.delivery() {
            Some(Delivery {
                attempts, due_ms, published_ms, history, batching, abandoned, ..
            }) => Self {
                attempts: *attempts,
                due_ms: *due_ms,
                published_ms: *published_ms,
                first_ms: history.first_attempt().map(|first| first.at_ms),
                batching: batching.known().expect("a word of this version"),
                abandoned: *abandoned,
                hold,
            },
            None => {
                let (published_ms, batching) = (held.published_ms(), Batching::Allowed);
                Self {
                    attempts: 0,
                    due_ms: published_ms + delayed_ms,
                    published_ms,
                    first_ms: None,
                    batching,
                    abandoned: false,
                    hold,
                }
            }
        }
    }

    /// The number of attempts left under this limit. A retry alone after a refused batch ignores
    /// the limit.
    fn left(&self, most: u32) -> u32 {
        most.saturating_sub(self.attempts).max(u32::from(self.batching == Batching::RetryAlone))
    }
}

impl Inner {
    pub(crate) fn record_violation(&mut self, id: Uuid, violation: &str) {
        let violation = format!("{}: {violation}", self.ledger.name(id));
        self.trace(|| format!("BROKEN {violation}"));
        self.ledger.record_violation(violation);
    }

    /// The address that a delivery goes to.
    pub(crate) fn address_of(&self, id: Uuid) -> Option<usize> {
        let known = self.ledger.known.get(&id)?;
        known.subscription.map(|number| address(number, known.route))
    }

    pub(crate) fn bases(&self, id: Uuid) -> Vec<Base> {
        let invocation = &self.invocations[self.current];
        let origin = self.ledger.origin(id);
        let mut messages = invocation.messages_for(id, origin);
        if messages.is_empty() && self.ledger.ends_letter(id) {
            messages = invocation.messages_of(origin);
        }
        messages.into_iter().map(|held| Base::new(held, self.delayed_ms(id))).collect()
    }

    /// The number of the subscription and the deliveries of a request, in order. The deliveries are
    /// empty if nothing may lead to such a request.
    pub(crate) fn addressees(&self, request: &Request) -> (usize, Vec<Uuid>) {
        let host = request.url.host_str().unwrap_or_default();
        let number =
            host.strip_prefix(['s', 'r', 'd']).and_then(|host| host.strip_suffix(".example.com"));
        let Some(number) = number.and_then(|number| number.parse().ok()) else {
            return (0, Vec::new());
        };
        let body = std::str::from_utf8(&request.body).unwrap_or_default();
        let route = match host.as_bytes().first() {
            Some(b'r') => Route::Reply,
            Some(b'd') => Route::Sink,
            Some(_) | None => Route::Event,
        };
        let known = |(record, index)| self.ledger.ids.get(&(record, Some(number), index)).copied();
        let of_way = |id: &Uuid| {
            self.ledger.known[id].route == route
                && self.ledger.known[id].subscription == Some(number)
        };
        let after =
            |id: Uuid| self.ledger.after.get(&id).into_iter().flatten().copied().find(of_way);
        let ids: Vec<Uuid> = match Self::letters_in(body) {
            Some(letters) => letters.into_iter().filter_map(after).collect(),
            None => marked(body)
                .filter_map(known)
                .map(|id| self.replayed_as(id))
                .filter(of_way)
                .collect(),
        };
        (number, ids)
    }

    /// Handles a request that reaches an endpoint. Returns the result for the function, and the
    /// late response.
    pub(crate) fn request(&mut self, request: &Request) -> (Exchange, Option<LateAnswer>) {
        let (now_ms, clock_ms) = (self.now_ms, self.clock_ms());
        let (number, ids) = self.addressees(request);
        if ids.is_empty() {
            self.ledger
                .record_violation(format!("a request to {} that nothing leads to", request.url));
            return (Exchange::new(TransportResult::Aborted, clock_ms, 0), None);
        }
        self.check_body(number, &ids, request);
        self.invocation().attempted.extend(ids.iter().map(|id| (number, *id)));
        self.ledger.shared_requests += u64::from(ids.len() > 1);
        let at_sink = self.ledger.known[&ids[0]].route == Route::Sink;
        let behaviour =
            if at_sink { self.sink_behaviours[number] } else { self.behaviours[number] };
        let is_known = self.ledger.seen.get(&ids[0]).is_some_and(|seen| !seen.is_empty());
        let Answer { mut result, mut duration_ms } =
            behaviour.towards(is_known).answer(&mut self.random, now_ms, request.timeout_ms);
        if !at_sink && self.served.is_too_much(behaviour, now_ms) {
            result = answered(503, None);
        }
        let mut taken = self.rules[number].expected(&result) == Expected::Delivered;
        let lost = self.random.injects(Fault::HttpAnswerLost);
        if lost && self.random.percent(50) {
            result = TransportResult::SocketError;
        } else if lost {
            (result, duration_ms) = (TransportResult::TimedOut, request.timeout_ms);
        }
        let waits_for_late = result == TransportResult::TimedOut
            && self.rules[number].subscription.destination.late_window_ms > 0;
        let late = waits_for_late
            .then(|| LateAnswer::choose(&mut self.random, taken, request.timeout_ms))
            .flatten();
        taken |= late
            .as_ref()
            .is_some_and(|late| self.rules[number].expected(&late.result) == Expected::Delivered);
        let exchange = Exchange::new(result, clock_ms, duration_ms);
        let exchange = self.answer(number, ids[0], exchange);
        let failed = self.rules[number].expected(&exchange.result) != Expected::Delivered;
        let address = address(number, self.ledger.known[&ids[0]].route);
        self.watches[address].failed += u32::from(failed);
        for id in &ids {
            self.check_member(number, *id, ids.len());
            *self.ledger.forks.entry(*id).or_default() += u32::from(lost);
            self.note_member(number, *id, &exchange, taken, ids.len());
        }
        self.trace(|| {
            let names: Vec<String> = ids.iter().map(|id| self.ledger.name(*id)).collect();
            let (names, digest) = (names.join(" and "), request_digest(request));
            format!("requests {names}: {:?}, lost: {lost}: {digest}", exchange.result)
        });
        (exchange, late)
    }

    /// Checks that a body has the events as they were published, and no more of them than the
    /// subscription allows.
    fn check_body(&mut self, number: usize, ids: &[Uuid], request: &Request) {
        let batch = self.rules[number].subscription.batch;
        let body = std::str::from_utf8(&request.body).unwrap_or_default();
        let route = self.ledger.known[&ids[0]].route;
        if route == Route::Sink {
            return self.check_sink_request(ids[0], body);
        }
        // A delivery that started twice may have two texts, even in one request.
        let mut rest = body.strip_prefix('[').unwrap_or(body);
        let mut text = |id: &Uuid| {
            let texts = self.ledger.texts(*id);
            let next = texts.iter().find(|text| rest.starts_with(**text));
            let text = *next.or(texts.first()).unwrap_or(&"?");
            rest = rest.get(text.len() + 1..).unwrap_or_default();
            text
        };
        let texts: Vec<&str> = ids.iter().map(&mut text).collect();
        let array = format!("[{}]", texts.join(","));
        let is_letter = texts[0].contains("deadletterid");
        let is_cloud_event = if is_letter {
            !texts[0].starts_with(r#"{"event":"#)
        } else {
            texts[0].contains("specversion")
        };
        let bare = route == Route::Reply || (batch.is_none() && is_cloud_event);
        let right = if bare { body == texts[0] } else { body == array };
        let over = match batch {
            None => ids.len() > 1,
            Some(batch) => {
                let large = ids.len() > 1 && body.len() as u64 > batch.preferred_bytes;
                ids.len() > batch.max_events as usize || large
            }
        };
        if !right {
            self.record_violation(ids[0], "the request has other bytes than the event");
        }
        if over {
            self.record_violation(ids[0], "sent with more events than its subscription allows");
        }
    }

    /// Checks that an event of a request is allowed and due.
    fn check_member(&mut self, number: usize, id: Uuid, members: usize) {
        let bases = self.bases(id);
        let invocation = &self.invocations[self.current];
        let tally = invocation.tallies.get(&id).cloned().unwrap_or_default();
        let facts = self.versions.facts(&invocation.versions, number);
        let most = facts.iter().flatten().map(|facts| facts.max_attempts).max();
        let allowed: u32 = bases.iter().map(|base| base.left(most.unwrap_or(0))).sum();
        let retry = &self.rules[number].subscription.retry;
        // If the delivery started twice, the younger one may go on.
        let base_ms = bases.iter().map(|base| base.published_ms).max().unwrap_or(0);
        let published_ms = self.ledger.published_ms(id).unwrap_or(base_ms);
        let age_ms = self.clock_ms().saturating_sub(published_ms);
        let lived_ms = age_ms.saturating_sub(self.delayed_ms(id));
        // A reply that was published twice has two starts. Only a message that is due can lead to
        // this request, so the earliest start of the due ones counts.
        let due_now = bases.iter().filter(|base| base.due_ms <= self.clock_ms());
        let started_from_ms = due_now
            .map(|base| self.ledger.published_ms(id).unwrap_or(base.published_ms))
            .min()
            .unwrap_or(published_ms);
        let starts_ms = started_from_ms + self.delayed_ms(id);
        let due_ms = bases.iter().map(|base| base.due_ms).min().unwrap_or(u64::MAX);
        let in_place_ms = match (&bases[..], tally.last) {
            ([base], Some((ended_ms, Expected::Retry(least_ms)))) => {
                let first_ms = base.first_ms.or(tally.first_ms).unwrap_or(ended_ms);
                let attempts = base.attempts + tally.requests;
                ended_ms + self.rules[number].wait_ms(attempts, first_ms, ended_ms, least_ms).0
            }
            _ => due_ms,
        };
        let ended = matches!(
            tally.last,
            Some((_, Expected::Delivered | Expected::Final | Expected::RetriedAlone))
        );
        // A retry alone after a refused batch ignores the limits.
        let alone = bases.iter().any(|base| base.batching == Batching::RetryAlone);
        let unbatched = bases.iter().all(|base| base.batching != Batching::Allowed);
        let complaints = [
            (tally.requests >= allowed, "attempted more often than its policy allows"),
            (
                self.clock_ms() < due_ms || self.clock_ms() < in_place_ms,
                "attempted before it was due",
            ),
            (
                retry.time_to_live_ms.is_some_and(|limit_ms| lived_ms >= limit_ms) && !alone,
                "attempted past its time to live",
            ),
            (age_ms >= LIFETIME_MAX_MS, "attempted past 14 days"),
            (self.clock_ms() < starts_ms, "attempted before its start"),
            (facts.iter().flatten().all(|facts| facts.paused), "attempted although paused"),
            (ended && bases.len() == 1, "attempted after its end"),
            (members > 1 && unbatched, "batched although its batch was refused before"),
        ];
        for (_, complaint) in complaints.into_iter().filter(|(broken, _)| *broken) {
            self.record_violation(id, complaint);
        }
    }

    /// Records the result of a request for one of its events.
    fn note_member(
        &mut self,
        number: usize,
        id: Uuid,
        exchange: &Exchange,
        taken: bool,
        members: usize,
    ) {
        let (at_ms, ended_ms) = (exchange.started_ms, exchange.ended_ms());
        let before_ms = self.bases(id).first().and_then(|base| base.first_ms);
        let expected = self.rules[number].expected_of(&exchange.result, members);
        let tally = self.invocation().tallies.entry(id).or_default();
        tally.requests += 1;
        tally.last = Some((ended_ms, expected));
        tally.last_at_ms = Some(at_ms);
        let first_ms = before_ms.unwrap_or(*tally.first_ms.get_or_insert(at_ms));
        let result_seen = exchange.result.clone();
        let request = self.ledger.newest_request();
        self.ledger.seen.entry(id).or_default().push(Seen {
            request,
            at_ms,
            ended_ms,
            result_seen,
            expected,
            taken,
            first_ms,
        });
    }
}
