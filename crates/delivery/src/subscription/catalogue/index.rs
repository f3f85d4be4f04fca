//! [`Index`]: finds the subscriptions of a topic that match an event, without evaluating every
//! filter.
//!
//! Most filters have a condition that can be looked up: an exact type, an attribute, or a prefix of
//! the subject. The index skips the filters whose condition the event does not satisfy. It
//! evaluates the remaining filters, and those without such a condition. A filter that several
//! subscriptions have is evaluated once. The result is the same as that of evaluating every filter.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::event::Members;
use crate::event::path::scalar;
use crate::subscription::Subscription;
use crate::subscription::filter::Filter;
use crate::subscription::filter::advanced::{Arrays, Test, TextMatch, folded_texts};
use crate::subscription::filter::key::Key;
use crate::subscription::name::NameRange;

/// An index of the subscriptions of one topic.
#[derive(Debug, Clone)]
pub(super) struct Index {
    /// The subscriptions, sorted by name. Other fields refer to positions in this list.
    subscriptions: Vec<Arc<Subscription>>,
    /// For each distinct filter, the positions of the subscriptions that have it.
    filters: Vec<Vec<usize>>,
    /// For each operand, the texts that filters compare with it.
    demands: BTreeMap<Operand, Texts>,
    /// The positions of filters without a condition that can be looked up.
    others: Vec<usize>,
}

/// The value in an event that a comparison reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Operand {
    /// The text of a member, compared exactly.
    Member(String),
    /// The value at an Event Grid key, or each element if the value is an array. Case is ignored.
    Folded { key: Key, arrays: Arrays },
}

impl Operand {
    /// Returns the values of this operand in an event with these members.
    fn texts<'a>(&self, members: &Members<'a>) -> Vec<Cow<'a, str>> {
        match self {
            Self::Member(name) => members.get(name).and_then(scalar).into_iter().collect(),
            Self::Folded { key, arrays } => {
                folded_texts(key, *arrays, members).into_iter().map(Cow::Owned).collect()
            }
        }
    }
}

/// The relation between an operand and a text that makes a comparison true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Relation {
    Is,
    BeginsWith,
}

/// A comparison of an operand with a text. The index can look up such comparisons.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Comparison {
    operand: Operand,
    relation: Relation,
    text: String,
}

/// A necessary condition of a filter: every event that the filter matches satisfies at least one of
/// these comparisons.
type Demand = Vec<Comparison>;

/// Returns the necessary conditions of a filter. A matching event satisfies each of them.
fn demands(filter: &Filter) -> Vec<Demand> {
    let demand = |name: &str, relation: Relation, text: &str| {
        let operand = Operand::Member(name.to_owned());
        vec![vec![Comparison { operand, relation, text: text.to_owned() }]]
    };
    match filter {
        Filter::Exact { name, value } | Filter::ExactText { name, value } => {
            demand(name, Relation::Is, value)
        }
        Filter::Prefix { name, value } => demand(name, Relation::BeginsWith, value),
        Filter::All(filters) => filters.iter().flat_map(demands).collect(),
        Filter::Any(filters) => {
            let smallest = |filter: &Filter| demands(filter).into_iter().min_by_key(Vec::len);
            let each: Option<Vec<Demand>> = filters.iter().map(smallest).collect();
            each.map(|each| each.concat()).into_iter().collect()
        }
        Filter::Advanced(condition) => {
            let Test::Text(test) = &condition.test else { return Vec::new() };
            let relation = match test.how() {
                TextMatch::In => Relation::Is,
                TextMatch::BeginsWith => Relation::BeginsWith,
                TextMatch::Contains | TextMatch::EndsWith => return Vec::new(),
            };
            let (key, arrays) = (&condition.key, condition.arrays);
            let operand = || Operand::Folded { key: key.clone(), arrays };
            let comparison = |text: &String| {
                let (operand, text) = (operand(), text.clone());
                Comparison { operand, relation, text }
            };
            vec![test.folded().iter().map(comparison).collect()]
        }
        Filter::Cesql(cesql) => demands(&cesql.implied()),
        Filter::Not(_) | Filter::Suffix { .. } => Vec::new(),
    }
}

/// The texts that filters compare with one operand. Each text has a list of the positions of its
/// filters.
#[derive(Debug, Clone, Default)]
struct Texts {
    is: BTreeMap<String, Vec<usize>>,
    begins_with: BTreeMap<String, Vec<usize>>,
    /// The distinct lengths in bytes of the texts in `begins_with`, ascending.
    lengths: Vec<usize>,
}

impl Texts {
    fn add(&mut self, relation: Relation, text: String, filter: usize) {
        let texts = match relation {
            Relation::Is => &mut self.is,
            Relation::BeginsWith => {
                if let Err(at) = self.lengths.binary_search(&text.len()) {
                    self.lengths.insert(at, text.len());
                }
                &mut self.begins_with
            }
        };
        texts.entry(text).or_default().push(filter);
    }

    /// Returns the positions of the filters whose comparison with a text is true.
    fn find<'s>(&'s self, text: &'s str) -> impl Iterator<Item = usize> + 's {
        let beginnings = self.lengths.iter().map_while(|length| {
            // Lengths that would split a character are skipped.
            (*length <= text.len()).then(|| text.get(..*length))
        });
        let begins_with = beginnings.flatten().filter_map(|text| self.begins_with.get(text));
        self.is.get(text).into_iter().chain(begins_with).flatten().copied()
    }
}

impl Index {
    /// Builds the index of a topic's subscriptions, which must be sorted by name.
    pub(super) fn new(subscriptions: Vec<Arc<Subscription>>) -> Self {
        let mut known: HashMap<&Filter, usize> = HashMap::new();
        let mut filters: Vec<Vec<usize>> = Vec::new();
        for (position, subscription) in subscriptions.iter().enumerate() {
            let filter = *known.entry(&subscription.filter).or_insert(filters.len());
            match filters.get_mut(filter) {
                Some(positions) => positions.push(position),
                None => filters.push(vec![position]),
            }
        }
        let first = |positions: &Vec<usize>| demands(&subscriptions[positions[0]].filter);
        let all: Vec<Vec<Demand>> = filters.iter().map(first).collect();
        // Each filter is indexed by its most selective condition. A type that all filters name is
        // not selective.
        let mut counts: HashMap<&Comparison, usize> = HashMap::new();
        for comparison in all.iter().flatten().flatten() {
            *counts.entry(comparison).or_default() += 1;
        }
        let rarest = |demands: &Vec<Demand>| {
            let count = |demand: &&Demand| -> usize {
                demand.iter().map(|comparison| counts[comparison]).sum()
            };
            demands.iter().min_by_key(count).cloned()
        };
        let rarest: Vec<Option<Demand>> = all.iter().map(rarest).collect();
        let (mut demands, mut others) = (BTreeMap::<Operand, Texts>::new(), Vec::new());
        for (filter, demand) in rarest.into_iter().enumerate() {
            let Some(demand) = demand else {
                others.push(filter);
                continue;
            };
            for Comparison { operand, relation, text } in demand {
                demands.entry(operand).or_default().add(relation, text, filter);
            }
        }
        Self { subscriptions, filters, demands, others }
    }

    /// Returns the positions of the filters that may match an event.
    fn candidates(&self, members: &Members<'_>) -> Vec<usize> {
        // This is a set, because an array of the event may repeat a text any number of times.
        let mut found: BTreeSet<usize> = BTreeSet::new();
        for (operand, texts) in &self.demands {
            for text in operand.texts(members).into_iter().collect::<BTreeSet<_>>() {
                found.extend(texts.find(&text));
            }
        }
        // These filters are not indexed, so adding them creates no duplicates.
        found.into_iter().chain(self.others.iter().copied()).collect()
    }

    /// Returns the subscriptions that match an event and have a name in the range, sorted by name.
    pub(super) fn matching<'s>(
        &'s self,
        members: &Members<'_>,
        names: &NameRange,
    ) -> impl Iterator<Item = &'s Arc<Subscription>> + use<'s> {
        let first =
            self.subscriptions.partition_point(|subscription| subscription.name.name < names.from);
        let end = self
            .subscriptions
            .partition_point(|subscription| !names.ends_before(&subscription.name.name));
        let mut positions: Vec<usize> = Vec::new();
        for filter in self.candidates(members) {
            let holders = &self.filters[filter];
            let in_range =
                holders.partition_point(|at| *at < first)..holders.partition_point(|at| *at < end);
            let in_range = holders.get(in_range).unwrap_or_default();
            if !in_range.is_empty() && self.subscriptions[holders[0]].filter.takes(members) {
                positions.extend(in_range);
            }
        }
        positions.sort_unstable();
        positions.into_iter().map(|position| &self.subscriptions[position])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::filter::advanced::{Condition, TextTest};
    use crate::subscription::profile::Dialect;

    fn exact(name: &str, value: &str) -> Filter {
        Filter::Exact { name: name.to_owned(), value: value.to_owned() }
    }

    fn index(filters: impl IntoIterator<Item = Filter>) -> Index {
        let subscription = |(number, filter): (usize, Filter)| {
            let name = format!("n/t/{number:05}").parse().expect("a name");
            let url = "https://example.com/".parse().expect("a URL");
            Arc::new(Subscription { filter, ..Subscription::new(name, Dialect::Native, url) })
        };
        Index::new(filters.into_iter().enumerate().map(subscription).collect())
    }

    fn compared(index: &Index, event: &str) -> usize {
        index.candidates(&Members::parse(event).expect("an object")).len()
    }

    #[test]
    fn of_a_thousand_filters_only_those_are_compared_that_may_match() {
        let texts = |number: usize, how: TextMatch| {
            let test = Test::Text(TextTest::new(how, &[format!("Tenant/{number:03}")]));
            let key = Key::parse("subject").expect("a key");
            Filter::Advanced(Condition { key, test, arrays: Arrays::OtherType })
        };
        let prefix = |number: usize| Filter::Prefix {
            name: "subject".to_owned(),
            value: format!("tenant/{number:03}"),
        };
        let number_of = |number: usize| exact("tenant", &format!("tenant/{number:03}"));
        let make: [&dyn Fn(usize) -> Filter; 7] = [
            &number_of,
            &prefix,
            &|number| texts(number, TextMatch::In),
            &|number| texts(number, TextMatch::BeginsWith),
            // A condition that all filters share does not distinguish them, wherever it is.
            &|number| Filter::All(vec![exact("type", "order"), number_of(number)]),
            &|number| Filter::All(vec![prefix(number), exact("type", "order")]),
            &|number| Filter::Any(vec![exact("tenantid", &number.to_string()), number_of(number)]),
        ];
        let event = r#"{"type":"order","tenant":"tenant/500","subject":"tenant/500"}"#;
        for (which, make) in make.iter().enumerate() {
            assert_eq!(compared(&index((0..1000).map(make)), event), 1, "{which}");
        }
    }

    #[test]
    fn an_event_that_repeats_a_text_finds_no_filter_twice() {
        let test = || TextTest::new(TextMatch::In, &["urgent".to_owned()]);
        let (key, test) = (Key::parse("tags").expect("a key"), Test::Text(test()));
        let index = index([Filter::Advanced(Condition { key, test, arrays: Arrays::Elements })]);
        let event = format!(r#"{{"tags":[{}"urgent"]}}"#, "\"urgent\",".repeat(1000));
        assert_eq!(compared(&index, &event), 1);
    }

    #[test]
    fn what_cannot_be_looked_up_is_always_compared_and_equal_filters_once() {
        let not = |number: usize| Filter::Not(Box::new(exact("n", &number.to_string())));
        assert_eq!(compared(&index((0..1000).map(not)), "{}"), 1000);
        let suffix = Filter::Suffix { name: "type".to_owned(), value: "x".to_owned() };
        let any = Filter::Any(vec![exact("type", "a"), suffix]);
        assert_eq!(compared(&index([any]), r#"{"type":"b"}"#), 1);
        let same = std::iter::repeat_n(Filter::EVERYTHING, 1000);
        assert_eq!(compared(&index(same), "{}"), 1);
        assert_eq!(compared(&index([Filter::Any(Vec::new())]), "{}"), 0);
    }
}
