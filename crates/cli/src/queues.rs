//! The queues of the template: where each gives up to, and which function reads it.
//!
//! Separate because `doctor`, `cost` and [`crate::stack`] use one list. A test compares it with `template.yaml`.

/// The outputs that name the functions that read queues.
pub(crate) const DISPATCH: &str = "DispatchFunctionName";
pub(crate) const DEADLETTER: &str = "DeadLetterFunctionName";
/// No function reads it.
pub(crate) const LAST_RESORT: &str = "LastResortQueue";

/// A queue as the template makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) name: &'static str,
    /// The queue to which SQS moves a message that was received too often.
    pub(crate) gives_up_to: Option<&'static str>,
    pub(crate) mapping: Option<Mapping>,
}

/// The event source mapping with which Lambda polls a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The output that names the function.
    pub(crate) function: &'static str,
    /// The parameter with the most concurrent invocations.
    pub(crate) concurrency: &'static str,
}

const fn by(function: &'static str, concurrency: &'static str) -> Option<Mapping> {
    Some(Mapping { function, concurrency })
}

const fn queue(
    name: &'static str,
    gives_up_to: Option<&'static str>,
    mapping: Option<Mapping>,
) -> Expected {
    Expected { name, gives_up_to, mapping }
}

const DEAD_LETTERS: &str = "DeadLetterQueue";
const UNPROCESSED: &str = "UnprocessedQueue";

pub(crate) const QUEUES: [Expected; 8] = [
    queue("EventsQueue", Some(UNPROCESSED), by(DISPATCH, "EventsConcurrency")),
    queue("FanOutQueue", Some(DEAD_LETTERS), by(DISPATCH, "FanOutConcurrency")),
    queue("RetryQueue", Some(DEAD_LETTERS), by(DISPATCH, "RetryConcurrency")),
    queue("SlowQueue", Some(DEAD_LETTERS), by(DISPATCH, "SlowConcurrency")),
    queue("IsolationQueue", Some(DEAD_LETTERS), by(DISPATCH, "IsolationConcurrency")),
    queue(DEAD_LETTERS, Some(LAST_RESORT), by(DEADLETTER, "DeadLetterConcurrency")),
    queue(UNPROCESSED, None, by(DEADLETTER, "DeadLetterConcurrency")),
    queue(LAST_RESORT, None, None),
];

impl Expected {
    /// The output that has its URL.
    pub(crate) fn output(&self) -> String {
        format!("{}Url", self.name)
    }
}

/// The mappings of all queues that Lambda polls.
pub(crate) fn mappings() -> impl Iterator<Item = Mapping> {
    QUEUES.iter().filter_map(|queue| queue.mapping)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The resources of the template with this type: the name and the lines of each.
    fn resources(of_type: &str) -> Vec<(&'static str, &'static str)> {
        let template = include_str!("../../../template.yaml");
        let (_, all) = template.split_once("\nResources:\n").expect("it has resources");
        let (all, _) = all.split_once("\nOutputs:\n").expect("it has outputs");
        let of_type = format!(":\n    Type: {of_type}\n");
        let named = all.split("\n\n").filter_map(|block| block.split_once(&of_type));
        named.map(|(before, lines)| (before.lines().next_back().unwrap().trim(), lines)).collect()
    }

    /// The name behind this text in the lines of a resource.
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
                let concurrency = named(lines, "MaximumConcurrency: !Ref ").expect("a parameter");
                (queue, Mapping { function, concurrency })
            })
            .collect();
        let known: Vec<_> =
            QUEUES.iter().filter_map(|queue| Some((queue.name, queue.mapping?))).collect();
        assert_eq!(known, of_template);
    }
}
