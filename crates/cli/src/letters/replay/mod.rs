//! Sends letters again: the original event, to its own subscription alone, with a fresh state and a
//! new id.
//!
//! First the plan, whole and counted; then chunks of ten, each written down before it is sent and
//! after. Killed at any moment, a job is taken up again from its ledger ([`super::ledger`]); what
//! is uncertain then is named. Separate from [`sender`], which knows ways and no ledgers.
//!
//! Promises: every letter of the plan is sent at least once or has a line that says why not.
//! Repeats lie within the chunks that a resume names. Does not promise order.

pub(super) mod jobs;
mod pace;
pub(crate) mod sender;

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use adapters::machine::Machine;
use anyhow::{Context as _, bail, ensure};
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::deadletter::{MALFORMED, UNKNOWN_TOPIC, UNPROCESSED};
use delivery::ports::Clock as _;
use delivery::subscription::name::NAMELESS;
use delivery::time::moment;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use url::Url;
use uuid::Uuid;

use self::jobs::{chunk_key, done_key, folders, plan_key, plan_of, read_chunks};
use self::sender::{Fate, Parcel, Sender, To};
use super::Letters;
use super::filter::decided_ms;
use super::ledger::{
    self, CHUNK, Counts, Header, Line, Planned, State, begin, write_lines, write_plan,
};
use crate::queue::DEV_EVENTS_QUEUE;

pub(crate) use self::pace::{Pace, Rate};

/// Chunks under way at a time: so many may be uncertain after a crash.
const CHUNKS_AT_ONCE: usize = 4;

/// What would be sent, counted exactly.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// In the order of sending: what ended first goes first.
    letters: Vec<(Option<u64>, Planned)>,
    /// What cannot go, by the place it stands in.
    pub(crate) homeless: BTreeMap<String, u64>,
    /// How many letters each subscription gets back.
    pub(crate) subscriptions: BTreeMap<String, u64>,
}

impl Plan {
    /// One letter more; of a place that is no subscription only where it can go elsewhere.
    pub(crate) fn add(&mut self, letter: &StoredDeadLetter, to: &To) {
        let name = letter.subscription.to_string();
        let homeless = [MALFORMED, UNKNOWN_TOPIC, UNPROCESSED, NAMELESS]
            .contains(&letter.subscription.name.as_str());
        if homeless && matches!(to, To::Subscription) {
            *self.homeless.entry(name).or_default() += 1;
            return;
        }
        *self.subscriptions.entry(name).or_default() += 1;
        self.letters
            .push((decided_ms(letter), Planned { letter: letter.id, key: letter.key.clone() }));
    }

    /// How many letters would be sent.
    pub(crate) fn len(&self) -> usize {
        self.letters.len()
    }

    /// Which letters would be sent.
    pub(crate) fn ids(&self) -> Vec<Uuid> {
        self.letters.iter().map(|(_, planned)| planned.letter).collect()
    }

    fn ordered(mut self) -> Vec<Planned> {
        self.letters.sort_by(|(a_ms, a), (b_ms, b)| (a_ms, a.letter).cmp(&(b_ms, b.letter)));
        self.letters.into_iter().map(|(_, planned)| planned).collect()
    }
}

/// A job is called after the moment it begins.
pub(crate) fn name_of(now_ms: u64) -> String {
    moment::rfc3339(now_ms)[..23].replace([':', '.'], "-")
}

/// The queue that letters go through: as given, as the ledger of the job has it, or that of
/// `lastmile dev`.
///
/// # Errors
/// When a queue is given for what passes through none.
pub(crate) fn queue_of(to: &To, given: Option<Url>, kept: Option<&str>) -> anyhow::Result<Url> {
    if matches!(to, To::Url(_)) && given.is_some() {
        anyhow::bail!(
            "events that are posted to an address pass through no queue: --queue-url has no meaning here"
        );
    }
    match given {
        Some(url) => Ok(url),
        None => kept.unwrap_or(DEV_EVENTS_QUEUE).parse().context("the queue of the job is a URL"),
    }
}

/// A job with its ledger.
pub(crate) struct Replay {
    letters: Letters,
    pub(crate) header: Header,
    plan: Vec<Planned>,
    chunks: BTreeMap<u32, Vec<Line>>,
}

impl Replay {
    /// Writes the plan of a new job.
    ///
    /// # Errors
    /// When there is a job of this name, or the ledger cannot be written.
    pub(crate) async fn start(
        letters: &Letters,
        job: String,
        to: &To,
        queue: Option<String>,
        plan: Plan,
    ) -> anyhow::Result<Self> {
        let plan = plan.ordered();
        let header = Header::new(job, Machine.now_ms(), to.to_string(), queue, plan.len());
        let place = letters.place();
        let key = plan_key(place, &header.job);
        let job = &header.job;
        ensure!(
            place.get(&key).await?.is_none(),
            "there is a job {job} already: --resume {job}, or another --name"
        );
        place.put(&key, write_plan(&header, &plan)).await?;
        Ok(Self { letters: letters.clone(), header, plan, chunks: BTreeMap::new() })
    }

    /// Takes a job up again from its ledger.
    ///
    /// # Errors
    /// When there is none of this name, or its ledger cannot be read.
    pub(crate) async fn resume(letters: &Letters, job: &str) -> anyhow::Result<Self> {
        let place = letters.place();
        let Some((header, plan)) = plan_of(place, job).await? else {
            let jobs = folders(place).await?;
            bail!("there is no job {job} in {}; there are: {}", place.name, jobs.join(", "));
        };
        let chunks = read_chunks(place, job, None).await?;
        Ok(Self { letters: letters.clone(), header, plan, chunks })
    }

    /// The chunks that may have been sent, and how many of their letters.
    pub(crate) fn uncertain(&self) -> Vec<(u32, u64)> {
        ledger::uncertain(&self.chunks)
    }

    /// How far it is.
    pub(crate) fn counts(&self) -> Counts {
        Counts::of(self.chunks.values().flatten())
    }

    /// How far the chunks are that a run does not touch again; what it tells of the others adds up
    /// with this.
    pub(crate) fn settled(&self) -> Counts {
        let open: HashSet<u32> = self.open_chunks().into_iter().collect();
        let settled = self.chunks.iter().filter(|(number, _)| !open.contains(number));
        Counts::of(settled.flat_map(|(_, lines)| lines))
    }

    /// Every letter of the plan, in the order of sending, with its line if it has one.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Uuid, Option<&Line>)> {
        let chunks = (1..).zip(self.plan.chunks(CHUNK));
        chunks.flat_map(|(number, planned)| {
            let lines = self.chunks.get(&number).map(Vec::as_slice).unwrap_or_default();
            planned.iter().map(|planned| {
                (planned.letter, lines.iter().find(|line| line.letter == planned.letter))
            })
        })
    }

    /// Sends what has no end yet; `told` hears of each chunk.
    ///
    /// # Errors
    /// When the ledger or a letter cannot be read or written, or nothing of a chunk was taken. What
    /// was done stands in the ledger.
    pub(crate) async fn run(
        &mut self,
        sender: &Sender,
        pace: Pace,
        told: impl Fn(Counts),
    ) -> anyhow::Result<Counts> {
        let open = self.open_chunks();
        let (begun_ms, stop) = (Machine.now_ms(), AtomicBool::new(false));
        let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
        let mut before = 0;
        let work: Vec<(u32, u64)> = open
            .into_iter()
            .map(|number| {
                let wait_ms = pace.rate.map_or(0, |rate| rate.wait_ms(before));
                before += self.of_chunk(number).len() as u64;
                (number, begun_ms.saturating_add(wait_ms))
            })
            .collect();
        let this = &*self;
        let chunks = work.into_iter().map(|(number, at_ms)| {
            let (stop, failed) = (&stop, &failed);
            async move {
                let wait_ms = at_ms.saturating_sub(Machine.now_ms());
                if wait_ms > 0 && !stop.load(Ordering::Relaxed) {
                    Machine.sleep(wait_ms).await;
                }
                if stop.load(Ordering::Relaxed) {
                    return None;
                }
                match this.chunk(number, sender, pace).await {
                    Ok(lines) => Some((number, lines)),
                    Err(error) => {
                        stop.store(true, Ordering::Relaxed);
                        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        None
                    }
                }
            }
        });
        let mut chunks = stream::iter(chunks).buffer_unordered(CHUNKS_AT_ONCE);
        let mut done = Vec::new();
        while let Some(chunk) = chunks.next().await {
            if let Some((number, lines)) = chunk {
                told(Counts::of(&lines));
                done.push((number, lines));
            }
        }
        drop(chunks);
        self.chunks.extend(done);
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => self.finish().await,
        }
    }

    /// The chunks with a letter that has no end.
    fn open_chunks(&self) -> Vec<u32> {
        let numbers = (1..).zip(self.plan.chunks(CHUNK)).map(|(number, _)| number);
        let is_open = |number: &u32| {
            let lines = self.chunks.get(number);
            lines
                .is_none_or(|lines| Counts::of(lines).ended() < self.of_chunk(*number).len() as u64)
        };
        numbers.filter(is_open).collect()
    }

    fn of_chunk(&self, number: u32) -> &[Planned] {
        self.plan.chunks(CHUNK).nth(number.saturating_sub(1) as usize).unwrap_or_default()
    }

    /// One chunk: read, written down, sent, written down.
    async fn chunk(&self, number: u32, sender: &Sender, pace: Pace) -> anyhow::Result<Vec<Line>> {
        let (job, place) = (&self.header.job, self.letters.place());
        let before = self.chunks.get(&number).map(Vec::as_slice);
        let mut lines =
            begin(job, self.of_chunk(number), before, pace.skip_uncertain, Machine.now_ms());
        let parcels = self.parcels(number, &mut lines).await?;
        let key = chunk_key(place, job, number);
        place.put(&key, write_lines(&lines)).await?;
        let fates = send(sender, &parcels, pace.rate).await;
        let problem = nothing_taken(&fates);
        for (parcel, fate) in parcels.iter().zip(fates) {
            let line = lines.iter_mut().find(|line| line.delivery == parcel.delivery);
            line.context("every parcel was made of a line")?.end(fate);
        }
        place.put(&key, write_lines(&lines)).await?;
        match problem {
            Some(problem) => {
                bail!("nothing of chunk {number} was taken: {problem}; go on with --resume {job}")
            }
            None => Ok(lines),
        }
    }

    /// The letters of a chunk that are to be sent; one that is gone is written down as such.
    async fn parcels(&self, number: u32, lines: &mut [Line]) -> anyhow::Result<Vec<Parcel>> {
        let wanted =
            lines.iter().zip(self.of_chunk(number)).filter(|(line, _)| line.state == State::Intent);
        let reads = wanted.map(|(line, planned)| async move {
            let bytes = self.letters.place().get(&planned.key).await?;
            let letters = bytes.map(|bytes| {
                delivery::deadletter::stored::read(
                    &planned.key,
                    &self.letters.place().prefix,
                    &bytes,
                )
            });
            let letters = letters.transpose().map_err(anyhow::Error::msg)?.unwrap_or_default();
            let letter = letters.into_iter().find(|letter| letter.id == planned.letter);
            anyhow::Ok(letter.map(|letter| Parcel { delivery: line.delivery, letter }))
        });
        let parcels: Vec<Option<Parcel>> =
            stream::iter(reads.collect::<Vec<_>>()).buffered(CHUNK).try_collect().await?;
        let parcels: Vec<Parcel> = parcels.into_iter().flatten().collect();
        let there: HashSet<Uuid> = parcels.iter().map(|parcel| parcel.delivery).collect();
        for line in lines
            .iter_mut()
            .filter(|line| line.state == State::Intent && !there.contains(&line.delivery))
        {
            line.state = State::Gone;
        }
        Ok(parcels)
    }

    /// Puts all lines into one blob once every letter has its end.
    async fn finish(&self) -> anyhow::Result<Counts> {
        let counts = self.counts();
        if counts.ended() == self.plan.len() as u64 {
            let place = self.letters.place();
            place
                .put(
                    &done_key(place, &self.header.job),
                    write_lines(self.chunks.values().flatten()),
                )
                .await?;
        }
        Ok(counts)
    }
}

/// Sends the parcels of a chunk, no faster than told.
async fn send(sender: &Sender, parcels: &[Parcel], rate: Option<Rate>) -> Vec<Fate> {
    let Some(rate) = rate else { return sender.send(parcels).await };
    let (begun_ms, mut fates) = (Machine.now_ms(), Vec::new());
    for burst in parcels.chunks(rate.burst()) {
        let due_ms = begun_ms.saturating_add(rate.wait_ms(fates.len() as u64));
        Machine.sleep(due_ms.saturating_sub(Machine.now_ms())).await;
        fates.extend(sender.send(burst).await);
    }
    fates
}

impl Line {
    fn end(&mut self, fate: Fate) {
        self.at = moment::rfc3339(Machine.now_ms());
        (self.state, self.problem) = match fate {
            Fate::Sent => (State::Sent, None),
            Fate::Refused(problem) => (State::Refused, Some(problem)),
            Fate::Unfit(problem) => (State::Unfit, Some(problem)),
            Fate::Uncertain(problem) => (State::Intent, Some(problem)),
        };
    }
}

/// Why nothing of a chunk was taken although something could have been: then the rest fares no
/// better.
fn nothing_taken(fates: &[Fate]) -> Option<String> {
    let mut problem = None;
    for fate in fates {
        match fate {
            Fate::Sent => return None,
            Fate::Refused(why) | Fate::Uncertain(why) => {
                _ = problem.get_or_insert_with(|| why.clone())
            }
            Fate::Unfit(_) => {}
        }
    }
    problem
}

#[cfg(test)]
mod tests {
    use super::super::samples::letter;
    use super::*;

    #[test]
    fn a_plan_goes_from_the_oldest_to_the_newest_and_names_what_has_no_subscription() {
        let mut plan = Plan::default();
        for number in [3, 1, 2] {
            plan.add(&letter(number), &To::Subscription);
        }
        let homeless = StoredDeadLetter {
            subscription: "shop/orders/_malformed".parse().unwrap(),
            ..letter(4)
        };
        plan.add(&homeless, &To::Subscription);
        assert_eq!((plan.len(), plan.homeless["shop/orders/_malformed"]), (3, 1));
        plan.add(&homeless, &To::Topic("a/b".parse().unwrap()));
        let order: Vec<u128> =
            plan.ordered().iter().map(|planned| planned.letter.as_u128()).collect();
        assert_eq!(order, [1, 2, 3, 4]);
    }
}
