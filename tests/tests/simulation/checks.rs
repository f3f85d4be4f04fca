//! What is checked while it happens: every request, every message that is sent, every blob that is written.

use delivery::deadletter::{Letter, Reason};
use delivery::delivery::Delivery;
use delivery::outcome::{Ending, Exchange};
use delivery::ports::{Message, PutError, QueueName};
use delivery::profile::LIFETIME_MAX_MS;
use delivery::request::Request;
use delivery::step::PAUSED_WAIT_MS;
use uuid::Uuid;

use super::endpoints::Answer;
use super::faults::Fault;
use super::ledger::Seen;
use super::queues::{Carried, Held};
use super::rules::{Expected, OWN_CONTAINER};
use super::storage::DEFAULT_CONTAINER;
use super::world::{Inner, Touched};

/// What the messages of the running invocation say about a delivery.
struct Base {
    attempts: u32,
    due_ms: u64,
    published_ms: u64,
    first_ms: Option<u64>,
}

impl Base {
    fn of(held: &Held) -> Self {
        match held.carried.delivery() {
            Some(Delivery { attempts, due_ms, published_ms, first_ms, .. }) => {
                Self { attempts: *attempts, due_ms: *due_ms, published_ms: *published_ms, first_ms: *first_ms }
            }
            None => Self { attempts: 0, due_ms: held.sent_ms, published_ms: held.sent_ms, first_ms: None },
        }
    }
}

impl Inner {
    fn broke(&mut self, id: Uuid, what: &str) {
        let what = format!("{}: {what}", self.ledger.name(id));
        self.tell(|| format!("BROKEN {what}"));
        self.ledger.broke(what);
    }

    fn bases(&self, id: Uuid) -> Vec<Base> {
        let origin = self.ledger.known.get(&id).map_or("", |known| &self.ledger.published[known.record].0);
        self.invocations[self.current].speaking_for(id, origin).into_iter().map(Base::of).collect()
    }

    /// A request has to be allowed, due, and true to the event.
    pub(crate) fn check_request(&mut self, number: usize, id: Uuid, request: &Request) {
        let bases = self.bases(id);
        let invocation = &self.invocations[self.current];
        let tally = invocation.tallies.get(&id).cloned().unwrap_or_default();
        let facts = self.versions.facts(&invocation.versions, number);
        let most = facts.iter().flatten().map(|facts| facts.max_attempts).max();
        let allowed: u32 = bases.iter().map(|base| most.unwrap_or(0).saturating_sub(base.attempts)).sum();
        let retry = &self.rules[number].subscription.retry;
        let published_ms = bases.first().map_or(0, |base| base.published_ms);
        let age_ms = self.now_ms - published_ms;
        let due_ms = bases.iter().map(|base| base.due_ms).min().unwrap_or(u64::MAX);
        let in_place_ms = match (&bases[..], tally.last) {
            ([base], Some((ended_ms, Expected::Retry(least_ms)))) => {
                let first_ms = base.first_ms.or(tally.first_ms).unwrap_or(ended_ms);
                let attempts = base.attempts + tally.requests;
                ended_ms + self.rules[number].wait_ms(attempts, first_ms, ended_ms, least_ms).0
            }
            _ => due_ms,
        };
        let known = &self.ledger.known[&id];
        let element = &self.ledger.published[known.record].1.elements[known.index];
        let body = std::str::from_utf8(&request.body).unwrap_or_default();
        let body = body.strip_prefix('[').and_then(|body| body.strip_suffix(']')).unwrap_or(body);
        let tried_after_end = matches!(tally.last, Some((_, Expected::Delivered | Expected::Final)));
        let complaints = [
            (tally.requests >= allowed, "attempted more often than its policy allows"),
            (self.now_ms < due_ms || self.now_ms < in_place_ms, "attempted before it was due"),
            (retry.time_to_live_ms.is_some_and(|limit_ms| age_ms >= limit_ms), "attempted past its time to live"),
            (age_ms >= LIFETIME_MAX_MS, "attempted past 14 days"),
            (facts.iter().flatten().all(|facts| facts.paused), "attempted although paused"),
            (body != element.text, "the request has other bytes than the event"),
            (tried_after_end && bases.len() == 1, "attempted after its end"),
        ];
        for (_, complaint) in complaints.into_iter().filter(|(broken, _)| *broken) {
            self.broke(id, complaint);
        }
    }

    /// Writes a request down, and says what the function is told of it.
    pub(crate) fn note_request(
        &mut self,
        number: usize,
        id: Uuid,
        answer: Answer,
        lost: bool,
        timeout_ms: u64,
    ) -> Exchange {
        let Answer { mut ending, mut duration_ms } = answer;
        let taken = self.rules[number].expected(&ending) == Expected::Delivered;
        if lost && self.dice.percent(50) {
            ending = Ending::SocketError;
        } else if lost {
            (ending, duration_ms) = (Ending::TimedOut, timeout_ms);
        }
        let (at_ms, ended_ms) = (self.now_ms, self.now_ms + duration_ms);
        let before_ms = self.bases(id).first().and_then(|base| base.first_ms);
        let expected = self.rules[number].expected(&ending);
        let tally = self.invocation().tallies.entry(id).or_default();
        tally.requests += 1;
        tally.last = Some((ended_ms, expected));
        let first_ms = before_ms.unwrap_or(*tally.first_ms.get_or_insert(at_ms));
        let seen = Seen { at_ms, ended_ms, told: ending.clone(), taken, first_ms };
        self.ledger.seen.entry(id).or_default().push(seen);
        Exchange::new(ending, at_ms, duration_ms)
    }

    /// A message has to say what happened, no more and no less.
    pub(crate) fn check_sent(&mut self, queue: QueueName, message: &Message, carried: &Carried) {
        let stores = self.invocation().stores;
        match (queue, carried) {
            (QueueName::Events | QueueName::Retry, Carried::Delivery(delivery)) if !stores => {
                self.check_state(delivery);
                self.check_wait(queue, delivery, message.wait_ms);
            }
            (QueueName::DeadLetter, Carried::Letter(letter)) if !stores => {
                self.check_state(&letter.delivery);
                self.check_reason(letter);
            }
            (QueueName::LastResort, Carried::Letter(letter)) if stores => {
                if self.now_ms < letter.decided_ms + letter.keep_trying_for_ms {
                    self.broke(letter.delivery.id, "given to the last resort too soon");
                }
            }
            (_, Carried::Nothing | Carried::Delivery(_) | Carried::Letter(_)) => {
                self.ledger.broke(format!("a message of the wrong kind for {queue:?}"));
            }
        }
    }

    /// The attempts of a delivery are those of its message and the requests made since.
    fn check_state(&mut self, delivery: &Delivery) {
        let id = delivery.id;
        let bases = self.bases(id);
        let panics = self.invocation().panics;
        let requests = self.invocation().tallies.get(&id).map_or(0, |tally| tally.requests);
        if bases.is_empty() {
            return self.broke(id, "a message about it from nowhere");
        }
        let [base] = &bases[..] else { return };
        let least = base.attempts + requests;
        let published = base.published_ms == delivery.published_ms;
        if !(least..=least + panics).contains(&delivery.attempts) {
            self.broke(id, &format!("{} attempts are written down, {least} were made", delivery.attempts));
        }
        let kept: u32 = delivery.history.first().len() as u32 + delivery.history.last().count() as u32;
        if !published || kept + delivery.history.omitted() != delivery.attempts {
            self.broke(id, "its publication or its history does not agree with its attempts");
        }
    }

    /// The wait that a message carries is that of the policy, and the queue is asked for it.
    fn check_wait(&mut self, queue: QueueName, delivery: &Delivery, wait_ms: u64) {
        let id = delivery.id;
        let bases = self.bases(id);
        let Some(number) = self.ledger.known.get(&id).and_then(|known| known.subscription) else {
            return self.broke(id, "sent on although nobody can deliver it");
        };
        let tally = self.invocation().tallies.get(&id).cloned().unwrap_or_default();
        let facts = self.versions.facts(&self.invocations[self.current].versions, number);
        let paused = facts.iter().flatten().any(|facts| facts.paused) && wait_ms == PAUSED_WAIT_MS;
        let split = queue == QueueName::Events && tally.requests == 0;
        if self.now_ms.saturating_add(wait_ms) < delivery.due_ms {
            self.broke(id, "sent with less than the rest of its wait");
        }
        if self.dice.quiet && !paused && !split && wait_ms != delivery.due_ms.saturating_sub(self.now_ms) {
            self.broke(id, "sent with another wait than the rest of it");
        }
        let ([base], 0) = (&bases[..], self.invocations[self.current].panics) else { return };
        match tally.last {
            None if delivery.due_ms != base.due_ms => self.broke(id, "a hop changed its due moment"),
            Some((ended_ms, Expected::Retry(least_ms))) => {
                let first_ms = base.first_ms.or(tally.first_ms).unwrap_or(ended_ms);
                let wait_ms = self.rules[number].wait_ms(delivery.attempts, first_ms, ended_ms, least_ms);
                if !(wait_ms.0..=wait_ms.1).contains(&delivery.due_ms.saturating_sub(ended_ms)) {
                    let what = format!("due after {} ms, not {wait_ms:?}", delivery.due_ms.saturating_sub(ended_ms));
                    self.broke(id, &what);
                }
            }
            Some((_, Expected::Delivered | Expected::Final)) => self.broke(id, "sent on after its end"),
            None => {}
        }
    }

    /// A limit that ends a delivery has to be reached.
    fn check_reason(&mut self, letter: &Letter) {
        let delivery = &letter.delivery;
        let number = self.ledger.known.get(&delivery.id).and_then(|known| known.subscription);
        let Some(number) = number else { return };
        let facts = self.versions.facts(&self.invocations[self.current].versions, number);
        let fewest = facts.iter().flatten().map(|facts| facts.max_attempts).min();
        let limit_ms = self.rules[number].subscription.retry.time_to_live_ms.unwrap_or(LIFETIME_MAX_MS);
        let age_ms = letter.decided_ms - delivery.published_ms;
        let policy = &self.rules[number].subscription.dead_letter;
        let (delay_ms, period_ms) = (policy.delay_ms, policy.keep_trying_for_ms);
        let last_attempt = letter.delivery.history.newest_attempt();
        let not_before_ms = last_attempt.map_or(letter.decided_ms, |last| letter.decided_ms.max(last.at_ms + delay_ms));
        let spoken_for = letter.reason != Reason::SubscriptionNotFound;
        if spoken_for && (letter.not_before_ms, letter.keep_trying_for_ms) != (not_before_ms, period_ms) {
            self.broke(delivery.id, "its dead letter has another delay or period than its policy");
        }
        if letter.reason == Reason::MaxDeliveryAttemptsExceeded && delivery.attempts < fewest.unwrap_or(0) {
            self.broke(delivery.id, "ended by a limit of attempts that it has not reached");
        }
        if letter.reason == Reason::TimeToLiveExceeded && age_ms < limit_ms {
            self.broke(delivery.id, "ended by a time to live that has not passed");
        }
        if letter.reason == Reason::SubscriptionNotFound && facts.iter().all(Option::is_some) {
            self.broke(delivery.id, "ended for want of a subscription that is there");
        }
    }

    /// A blob on its way into storage.
    pub(crate) fn store(&mut self, bucket: &str, mut key: String, mut bytes: Vec<u8>) -> Result<(), PutError> {
        self.saboteur.tampers_with_blob(&mut key, &mut bytes);
        let id = key.rsplit('/').next().and_then(|name| name.strip_suffix(".json")).and_then(|name| name.parse().ok());
        let id: Uuid = id.unwrap_or_default();
        self.check_blob(id, bucket, &key, &bytes);
        let (there, answer) = self.storage.put(&mut self.dice, self.now_ms, (bucket, &key), bytes);
        self.tell(|| format!("stores {} in {bucket}/{key}: {answer:?}", self.ledger.name(id)));
        if !self.invocation().stores {
            self.note_stored_directly(id, bucket, there, &answer);
        }
        answer
    }

    /// Dispatch wrote a blob itself, or tried to. If it could not, the record comes again, and so do its attempts; a
    /// container of one's own that is missing is no excuse, because there is the deployment's.
    fn note_stored_directly(&mut self, id: Uuid, bucket: &str, there: bool, answer: &Result<(), PutError>) {
        if there {
            *self.ledger.letters.entry(id).or_default() += 1;
            self.ledger.stored_directly.insert(id);
            self.ledger.owed.insert(id);
        }
        let excused = match answer {
            Ok(()) => false,
            Err(PutError::Refused(_)) => true,
            Err(PutError::NoSuchContainer(_)) => DEFAULT_CONTAINER.starts_with(bucket),
        };
        if excused {
            self.fork(Touched::Delivery(id));
        }
    }

    /// The key of a blob follows from the message, and so do its bytes.
    fn check_blob(&mut self, id: Uuid, bucket: &str, key: &str, bytes: &[u8]) {
        if !self.ledger.known.contains_key(&id) && !self.ledger.unprocessed.contains_key(&id) {
            return self.ledger.broke(format!("a blob that belongs to no delivery: {key}"));
        }
        if !self.invocation().stores {
            return;
        }
        let origin = match self.ledger.unprocessed.get(&id) {
            Some(record) => self.ledger.published[*record].0.clone(),
            None => String::new(),
        };
        let held: Vec<Held> = self.invocations[self.current].speaking_for(id, &origin).into_iter().cloned().collect();
        let prefix = [OWN_CONTAINER, DEFAULT_CONTAINER]
            .into_iter()
            .find_map(|container| container.strip_prefix(bucket).and_then(|prefix| prefix.strip_prefix('/')));
        let right = |held: &Held| {
            let due_ms = held.carried.delivery().map_or(held.sent_ms, |delivery| delivery.due_ms);
            let hour = delivery::moment::hour_folder(due_ms);
            let path = key.strip_prefix(prefix.unwrap_or("?")).unwrap_or("?");
            path.ends_with(&format!("/{hour}/{id}.json"))
        };
        if !held.iter().any(right) {
            self.broke(id, &format!("its blob has a key that its message does not give: {key}"));
        }
        let [held] = &held[..] else { return };
        if matches!(&held.carried, Carried::Letter(letter) if self.now_ms < letter.not_before_ms) {
            self.broke(id, "its dead letter was written before its delay had passed");
        }
        let place = (held.message.clone(), bucket.to_owned());
        let first = self.ledger.stored.entry(place).or_insert_with(|| (key.to_owned(), bytes.to_vec()));
        if (first.0.as_str(), &first.1[..]) != (key, bytes) {
            self.broke(id, "the same message was stored twice, and not alike");
        }
    }

    /// The bookkeeping of a fault that ends an invocation.
    pub(crate) fn note_killed(&mut self) {
        if self.invocation().short {
            self.dice.count(Fault::Killed);
        } else {
            self.ledger.broke("an invocation with time enough was ended by the platform".to_owned());
        }
        self.fork(Touched::Everything);
    }
}
