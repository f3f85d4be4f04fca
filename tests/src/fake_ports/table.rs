//! The table in memory, with faults: unreachable, throttled, late, or changed by another process at
//! the worst moment.

use delivery::delivery::health::news::NEWS;
use delivery::ports::Clock as _;
use delivery::table::{
    Entry, Expected, ItemKey, Line, Permit, PermitAnswer, Places, SlotQueue, Stored, Table,
    TableError, TakePermits, TakePlaces,
};

use super::{FakePorts, Hanging};
use crate::memory_table::MemoryTable;

/// An action of another process before the next write of news.
type BeforeNews = Box<dyn FnOnce(&mut MemoryTable, u64) + Send>;

#[derive(Default)]
pub(super) struct FaultyTable {
    table: MemoryTable,
    is_unreachable: bool,
    /// The remaining number of replacements that another process overtakes.
    overtaken: usize,
    are_news_refused: bool,
    before_news: Option<BeforeNews>,
    /// The remaining number of replacements until one is carried out but its response is lost.
    until_lost: Option<usize>,
    /// The remaining number of late responses about permits.
    late_permits: usize,
    /// The time after which a read of news responds, with what was stored when it began.
    late_news_ms: u64,
    /// The partition whose items are throttled.
    throttled: Option<String>,
}

impl FaultyTable {
    fn is_answer_lost(&mut self) -> bool {
        let left = self.until_lost.take();
        self.until_lost = left.and_then(|left| left.checked_sub(1));
        left == Some(0)
    }

    fn is_overtaken(&mut self) -> bool {
        let is_overtaken = self.overtaken > 0;
        self.overtaken -= usize::from(is_overtaken);
        is_overtaken
    }
}

/// Faults that begin now.
impl FakePorts {
    /// Makes the table unreachable, or reachable again.
    pub fn set_table_unreachable(&self, is_unreachable: bool) {
        self.state().table.is_unreachable = is_unreachable;
    }

    /// Makes the table refuse news, or accept them again.
    pub fn set_news_refused(&self, are_refused: bool) {
        self.state().table.are_news_refused = are_refused;
    }

    /// Runs an action of another process just before the next write of news.
    pub fn before_news(&self, happens: impl FnOnce(&mut MemoryTable, u64) + Send + 'static) {
        self.state().table.before_news = Some(Box::new(happens));
    }

    /// Loses the response of one replacement after so many others, so the client repeats it.
    pub fn lose_answer_after(&self, replacements: usize) {
        self.state().table.until_lost = Some(replacements);
    }

    /// Grants permits, but sends the response too late, this many times.
    pub fn answer_late_about_permits(&self, times: usize) {
        self.state().table.late_permits = times;
    }

    /// Makes each read of news respond this late, with what was stored when it began.
    pub fn answer_late_about_news(&self, late_ms: u64) {
        self.state().table.late_news_ms = late_ms;
    }

    /// Throttles this partition: it grants no permits.
    pub fn throttle(&self, partition: Option<&str>) {
        self.state().table.throttled = partition.map(str::to_owned);
    }

    /// Lets another process change an item just before this one does, this many times.
    pub fn overtake(&self, times: usize) {
        self.state().table.overtaken = times;
    }
}

/// Actions of another process, or of a person, on the table.
impl FakePorts {
    /// Changes the table; its requests are not counted.
    pub fn change_table<T>(&self, change: impl FnOnce(&mut MemoryTable, u64) -> T) -> T {
        let (now_ms, table) = (self.now_ms(), &mut self.state().table.table);
        let requests = table.requests;
        let changed = change(table, now_ms);
        table.requests = requests;
        changed
    }

    /// Writes an item, whatever its current version is.
    pub fn set_entry(&self, key: &ItemKey, entry: &Entry) {
        self.change_table(|table, now_ms| table.replace(key, entry, Expected::Anything, now_ms));
    }

    /// Gives this many permits of a destination to another process, for this long.
    ///
    /// # Panics
    /// If some permits are taken already.
    pub fn give_permits_to_another(&self, item: &ItemKey, count: u32, lasts_ms: u64) {
        let answer = self.change_table(|table, now_ms| {
            let permit = |number| Permit { until_ms: now_ms + lasts_ms, process: 7, number };
            let permits = (0..count).map(permit).collect();
            let instead_of = Vec::new();
            let take =
                TakePermits { permits, instead_of, most: count, only_if_nobody_waits: false };
            table.take_permits(item, &take, now_ms)
        });
        assert_eq!(answer, PermitAnswer::Taken);
    }

    /// Reserves places for this many other deliveries in a line of a destination, starting now and
    /// spaced by `each_us`.
    pub fn give_places_to_others(&self, item: &ItemKey, line: SlotQueue, count: u32, each_us: u64) {
        self.change_table(|table, now_ms| {
            let take = TakePlaces {
                count,
                each_us,
                others_wait: false,
                earliest_ms: now_ms,
                latest_ms: u64::MAX / 1_000,
                plausible_ms: u64::MAX / 1_000,
                report: None,
            };
            table.take_places(item, line, &take, now_ms)
        });
    }

    /// The text of an item.
    #[must_use]
    pub fn entry_text(&self, key: &ItemKey) -> Option<String> {
        self.change_table(|table, now_ms| table.entry(key, now_ms)).map(|stored| stored.text)
    }

    /// The number of requests that the functions made.
    #[must_use]
    pub fn table_requests(&self) -> u64 {
        self.state().table.table.requests
    }

    async fn ask_table<T>(&self, ask: impl FnOnce(&mut MemoryTable) -> T) -> Result<T, TableError> {
        self.hang(Hanging::Table).await;
        let faulty = &mut self.state().table;
        if faulty.is_unreachable {
            faulty.table.requests += 1;
            return Err(TableError::unreachable("reach it: injected by the test"));
        }
        Ok(ask(&mut faulty.table))
    }

    /// Applies the faults of a write of news.
    fn disturb_news(&self, now_ms: u64) -> Result<(), TableError> {
        let faulty = &mut self.state().table;
        if let Some(happens) = faulty.before_news.take() {
            happens(&mut faulty.table, now_ms);
        }
        let refusal = || TableError::refused("replace it: injected by the test");
        if faulty.are_news_refused { Err(refusal()) } else { Ok(()) }
    }
}

impl Table for FakePorts {
    async fn entry(&self, key: &ItemKey, now_ms: u64) -> Result<Option<Stored>, TableError> {
        self.ask_table(|table| table.entry(key, now_ms)).await
    }

    async fn replace(
        &self,
        key: &ItemKey,
        entry: &Entry,
        expected: Expected,
        now_ms: u64,
    ) -> Result<bool, TableError> {
        if key.partition == NEWS {
            self.disturb_news(now_ms)?;
        }
        let is_overtaken = expected != Expected::Anything && self.state().table.is_overtaken();
        let expected = if is_overtaken { Expected::Version(0) } else { expected };
        if self.state().table.is_answer_lost() {
            self.ask_table(|table| table.replace(key, entry, expected, now_ms)).await?;
        }
        self.ask_table(|table| table.replace(key, entry, expected, now_ms)).await
    }

    async fn newest(&self, partition: &str, most: u32) -> Result<Vec<Stored>, TableError> {
        let answer = self.ask_table(|table| table.newest(partition, most)).await;
        let late_ms = self.state().table.late_news_ms;
        if late_ms > 0 {
            self.clock.sleep(late_ms).await;
        }
        answer
    }

    async fn take_permits(
        &self,
        key: &ItemKey,
        take: &TakePermits,
        now_ms: u64,
    ) -> Result<PermitAnswer, TableError> {
        if self.state().table.throttled.as_deref() == Some(&key.partition) {
            return Err(TableError::refused("ThrottlingException: injected by the test"));
        }
        let answer = self.ask_table(|table| table.take_permits(key, take, now_ms)).await;
        let late_permits = self.state().table.late_permits;
        if late_permits > 0 {
            self.state().table.late_permits -= 1;
            self.clock.sleep(2_000).await;
        }
        answer
    }

    async fn return_permits(
        &self,
        key: &ItemKey,
        permits: &[Permit],
        takes_ms: Option<u64>,
        _now_ms: u64,
    ) -> Result<(), TableError> {
        self.ask_table(|table| table.return_permits(key, permits, takes_ms)).await
    }

    async fn take_places(
        &self,
        key: &ItemKey,
        name: SlotQueue,
        take: &TakePlaces,
        now_ms: u64,
    ) -> Result<Places, TableError> {
        if self.state().table.is_overtaken() {
            return Ok(Places { line: Line::Overtaken, recovery: None });
        }
        self.ask_table(|table| table.take_places(key, name, take, now_ms)).await
    }
}
