//! Lists the queues of the template, with their dead-letter queues and the functions that read
//! them.
//!
//! Separate because `doctor`, `cost` and [`crate::operations::stack`] use the same list. A test
//! compares the list with `template.yaml`.

/// The stack output with the name of the dispatch function.
pub(crate) const DISPATCH: &str = "DispatchFunctionName";
/// The stack output with the name of the deadletter function.
pub(crate) const DEADLETTER: &str = "DeadLetterFunctionName";
/// The name of the queue that no function reads.
pub(crate) const LAST_RESORT: &str = "LastResortQueue";

/// A queue that the template defines, and its settings in the template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) name: &'static str,
    /// The dead-letter queue of this queue, to which SQS moves a message after too many receives.
    pub(crate) gives_up_to: Option<&'static str>,
    pub(crate) mapping: Option<Mapping>,
}

/// The event source mapping through which Lambda polls a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The stack output with the name of the function.
    pub(crate) function: &'static str,
    /// The share of `Concurrency` that limits the mapping.
    pub(crate) share: Share,
}

/// A column of `Shares` in the template. Its value limits the concurrency of one mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    Events,
    Retry,
    Slow,
    Isolation,
    DeadLetter,
}

/// A row of `Shares` in the template: the maximum concurrency of each mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shares {
    /// The value of the parameter `Concurrency`, which is the sum of the shares.
    pub(crate) all: u32,
    pub(crate) events: u32,
    pub(crate) retry: u32,
    pub(crate) slow: u32,
    pub(crate) isolation: u32,
    pub(crate) dead_letter: u32,
}

impl Shares {
    const fn new([events, retry, slow, isolation, dead_letter]: [u32; 5]) -> Self {
        let all = events + retry + slow + isolation + dead_letter;
        Self { all, events, retry, slow, isolation, dead_letter }
    }

    pub(crate) fn size(&self, share: Share) -> u32 {
        match share {
            Share::Events => self.events,
            Share::Retry => self.retry,
            Share::Slow => self.slow,
            Share::Isolation => self.isolation,
            Share::DeadLetter => self.dead_letter,
        }
    }
}

/// The rows of `Shares` in the template, by increasing concurrency.
pub(crate) const SHARES: [Shares; 8] = [
    Shares::new([2, 2, 2, 2, 2]),
    Shares::new([8, 4, 3, 3, 2]),
    Shares::new([25, 10, 6, 6, 3]),
    Shares::new([50, 20, 10, 15, 5]),
    Shares::new([100, 40, 20, 30, 10]),
    Shares::new([250, 100, 50, 75, 25]),
    Shares::new([500, 200, 100, 150, 50]),
    Shares::new([1_000, 400, 200, 300, 100]),
];

/// Returns the row for this value of `Concurrency`; `None` if the template does not allow the
/// value.
pub(crate) fn shares_of(concurrency: u32) -> Option<Shares> {
    SHARES.into_iter().find(|row| row.all == concurrency)
}

const fn by(function: &'static str, share: Share) -> Option<Mapping> {
    Some(Mapping { function, share })
}

const fn queue(
    name: &'static str,
    gives_up_to: Option<&'static str>,
    mapping: Option<Mapping>,
) -> Expected {
    Expected { name, gives_up_to, mapping }
}

const DEAD_LETTERS: &str = "DeadLetterQueue";

pub(crate) const QUEUES: [Expected; 6] = [
    queue("EventsQueue", Some(DEAD_LETTERS), by(DISPATCH, Share::Events)),
    queue("RetryQueue", Some(DEAD_LETTERS), by(DISPATCH, Share::Retry)),
    queue("SlowQueue", Some(DEAD_LETTERS), by(DISPATCH, Share::Slow)),
    queue("IsolationQueue", Some(DEAD_LETTERS), by(DISPATCH, Share::Isolation)),
    queue(DEAD_LETTERS, Some(LAST_RESORT), by(DEADLETTER, Share::DeadLetter)),
    queue(LAST_RESORT, None, None),
];

impl Expected {
    /// Returns the name of the stack output that contains the URL of the queue.
    pub(crate) fn output(&self) -> String {
        format!("{}Url", self.name)
    }
}

/// Returns the event source mappings of all queues that functions read.
pub(crate) fn mappings() -> impl Iterator<Item = Mapping> {
    QUEUES.iter().filter_map(|queue| queue.mapping)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the name and the lines of each resource of this type in the template.
    fn resources(of_type: &str) -> Vec<(&'static str, &'static str)> {
        let template = include_str!("../../../../template.yaml");
        let (_, all) = template.split_once("\nResources:\n").expect("it has resources");
        let (all, _) = all.split_once("\nOutputs:\n").expect("it has outputs");
        let of_type = format!(":\n    Type: {of_type}\n");
        let named = all.split("\n\n").filter_map(|block| block.split_once(&of_type));
        named.map(|(before, lines)| (before.lines().next_back().unwrap().trim(), lines)).collect()
    }

    /// Returns the name that follows `before` in the lines of a resource.
    fn named(lines: &'static str, before: &str) -> Option<&'static str> {
        let (_, after) = lines.split_once(before)?;
        after.split(|letter: char| !letter.is_ascii_alphanumeric()).next()
    }

    #[test]
    fn the_queues_are_those_of_the_template() {
        let of_template: Vec<_> = resources("AWS::SQS::Queue")
            .into_iter()
            .map(|(name, lines)| (name, named(lines, "deadLetterTargetArn: !GetAtt ")))
            .collect();
        let known: Vec<_> = QUEUES.iter().map(|queue| (queue.name, queue.gives_up_to)).collect();
        assert_eq!(known, of_template);
    }

    #[test]
    fn the_mappings_are_those_of_the_template() {
        let of_template: Vec<_> = resources("AWS::Lambda::EventSourceMapping")
            .into_iter()
            .map(|(name, lines)| {
                let function = if name.starts_with("Dispatch") { DISPATCH } else { DEADLETTER };
                let read = function.strip_suffix("Name").expect("an output");
                assert!(lines.contains(&format!("!Ref {read}")), "{name}: {lines}");
                let queue = named(lines, "EventSourceArn: !GetAtt ").expect("a queue");
                let column =
                    named(lines, "MaximumConcurrency: !FindInMap [Shares, !Ref Concurrency, ");
                let column = column.expect("a share");
                let shares =
                    [Share::Events, Share::Retry, Share::Slow, Share::Isolation, Share::DeadLetter];
                let share = shares.into_iter().find(|share| format!("{share:?}") == column);
                (queue, Mapping { function, share: share.expect("a known one") })
            })
            .collect();
        let known: Vec<_> =
            QUEUES.iter().filter_map(|queue| Some((queue.name, queue.mapping?))).collect();
        assert_eq!(known, of_template);
    }

    #[test]
    fn the_shares_are_those_of_the_template_and_add_up_to_the_parameter() {
        let template = include_str!("../../../../template.yaml");
        let (_, rows) = template.split_once("\n  Shares:\n").expect("the mapping");
        let rows: Vec<&str> = rows.lines().take_while(|row| row.starts_with("    \"")).collect();
        let known = SHARES.map(|row| {
            let Shares { all, events, retry, slow, isolation, dead_letter } = row;
            format!("    \"{all}\": {{ Events: {events}, Retry: {retry}, Slow: {slow}, Isolation: {isolation}, DeadLetter: {dead_letter}, ")
        });
        assert_eq!(rows.len(), known.len());
        for (row, known) in rows.iter().zip(&known) {
            assert!(row.starts_with(known), "{row}\n{known}");
        }
    }
}
