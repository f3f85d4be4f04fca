//! The index of a topic finds the same subscriptions as comparing every filter, in the order of
//! names. This holds for any filters, events and ranges of names. The explanation of a match agrees
//! with it.

use std::collections::BTreeMap;

use delivery::event::{Event, Input, Members};
use delivery::explain::event_matches;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::filter::Filter;
use delivery::subscription::filter::advanced::{
    Arrays, Condition, NumberTest, Test, TextMatch, TextTest,
};
use delivery::subscription::filter::explanation::Explanation;
use delivery::subscription::filter::key::Key;
use delivery::subscription::filter::number::Number;
use delivery::subscription::name::{ALL_NAMES, NameRange, SubscriptionName};
use delivery::subscription::profile::Dialect;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Names and texts are few and similar, so that filters and events often match.
const NAMES: [&str; 7] = ["type", "eventType", "Type", "source", "topic", "subject", "n"];
const TEXTS: [&str; 12] =
    ["", "a", "A", "ab", "aB", "Ä", "äb", "1", "true", "ΟΔΟΣ", "οδος", "οδοσα"];
/// JSON values, in addition to the texts.
const VALUES: [&str; 14] = [
    "1",
    "1.0",
    "123456789.123456789",
    "123456789.12345679",
    "1e22",
    "[\"ΟΔΟΣΑ\", null]",
    "true",
    "null",
    "{}",
    "[\"A\", 1, null]",
    "[]",
    "\"\\u0061\"",
    "-0",
    "\"\\ud83d\\ude00a\"",
];

fn text() -> impl Strategy<Value = String> {
    select(&TEXTS[..]).prop_map(ToOwned::to_owned)
}

fn name() -> impl Strategy<Value = String> {
    select(&NAMES[..]).prop_map(ToOwned::to_owned)
}

/// Every relation of a text to a value.
pub(crate) const MATCHES: [TextMatch; 4] =
    [TextMatch::In, TextMatch::Contains, TextMatch::BeginsWith, TextMatch::EndsWith];

/// Every way to compare an array.
pub(crate) const ARRAYS: [Arrays; 4] =
    [Arrays::OtherType, Arrays::Elements, Arrays::Fail, Arrays::Leaves];

/// Any condition of Event Grid's advanced filters.
fn condition() -> impl Strategy<Value = Filter> {
    const KEYS: [&str; 7] = ["type", "EVENTTYPE", "subject", "data", "data.x", "n", "topic"];
    let texts = || {
        let any = (select(&MATCHES[..]), vec(text(), 1..3), any::<bool>());
        any.prop_map(|(how, values, with_case)| match with_case {
            true => TextTest::with_case(how, values),
            false => TextTest::new(how, &values),
        })
    };
    let number = |text: &str| Number::parse(text).expect("a number");
    let operand = number("1");
    let numbers = select(vec![
        NumberTest::In(vec![operand.clone()]),
        NumberTest::In(vec![number("123456789.123456789"), number("1e22")]),
        NumberTest::LessThan(operand.clone()),
        NumberTest::InRange(vec![(operand.clone(), operand)]),
    ]);
    let test = prop_oneof![
        4 => texts().prop_map(Test::Text),
        1 => texts().prop_map(Test::NotText),
        1 => numbers.clone().prop_map(Test::Number),
        1 => numbers.prop_map(Test::NotNumber),
        1 => any::<bool>().prop_map(Test::Bool),
        1 => Just(Test::IsNullOrUndefined),
        1 => Just(Test::IsNotNull),
    ];
    (select(&KEYS[..]), test, select(&ARRAYS[..])).prop_map(|(key, test, arrays)| {
        let key = Key::parse(key).expect("a key");
        Filter::Advanced(Condition { key, test, arrays })
    })
}

/// An expression of CloudEvents SQL that may match the events of this module.
pub(crate) fn cesql() -> impl Strategy<Value = String> {
    let name = || select(&["type", "source", "topic", "subject", "n", "data"][..]);
    let value = prop_oneof![
        2 => text().prop_map(|text| format!("'{text}'")),
        1 => select(&["1", "-0", "TRUE", "n", "'+1'", "'TRUE'", "'01'", "'1.0'"][..])
            .prop_map(ToOwned::to_owned),
    ];
    let pattern = (text(), select(&["", "%", "_", "%b"][..]));
    let negated = || select(&["", "NOT "][..]);
    let test = prop_oneof![
        3 => (name(), select(&["=", "!=", "<"][..]), value.clone())
            .prop_map(|(name, operator, value)| format!("{name} {operator} {value}")),
        1 => (value.clone(), name()).prop_map(|(value, name)| format!("{value} = {name}")),
        2 => (name(), negated(), pattern)
            .prop_map(|(name, not, (text, end))| format!("{name} {not}LIKE '{text}{end}'")),
        3 => (name(), negated(), vec(value, 1..4))
            .prop_map(|(name, not, set)| format!("{name} {not}IN ({})", set.join(", "))),
        1 => name().prop_map(|name| format!("EXISTS {name}")),
    ];
    test.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            4 => (vec(inner.clone(), 2..4), select(&[" AND ", " OR ", " XOR "][..]))
                .prop_map(|(tests, word)| format!("({})", tests.join(word))),
            1 => inner.prop_map(|test| format!("NOT ({test})")),
        ]
    })
}

/// Any filter of any dialect.
pub(crate) fn filter() -> impl Strategy<Value = Filter> {
    let leaf = prop_oneof![
        4 => (name(), text()).prop_map(|(name, value)| Filter::Exact { name, value }),
        2 => (name(), text()).prop_map(|(name, value)| Filter::ExactText { name, value }),
        2 => (name(), text()).prop_map(|(name, value)| Filter::Prefix { name, value }),
        1 => (name(), text()).prop_map(|(name, value)| Filter::Suffix { name, value }),
        4 => condition(),
        3 => cesql().prop_map(|text| Filter::Cesql(text.parse().expect("an expression"))),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Filter::All),
            vec(inner.clone(), 0..4).prop_map(Filter::Any),
            inner.prop_map(|filter| Filter::Not(Box::new(filter))),
        ]
    })
}

/// Any event as a JSON object.
pub(crate) fn event() -> impl Strategy<Value = String> {
    let quoted = text().prop_map(|text| format!("\"{text}\""));
    let value = prop_oneof![quoted, select(&VALUES[..]).prop_map(ToOwned::to_owned)];
    let data =
        select(&["{\"x\":\"A\"}", "{\"X\":[\"ab\",1]}", "{\"x\":null}", "\"a\"", "null"][..]);
    (btree_map(name(), value, 0..6), option::of(data)).prop_map(|(mut members, data)| {
        if let Some(data) = data {
            members.insert("data".to_owned(), data.to_owned());
        }
        let members: Vec<String> =
            members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    })
}

/// Subscriptions of one topic, each with its filter and perhaps an end.
fn subscriptions() -> impl Strategy<Value = BTreeMap<String, (Filter, Option<u64>)>> {
    btree_map("[a-e]{1,2}", (filter(), option::weighted(0.1, 0..3_u64)), 0..12)
}

fn names() -> impl Strategy<Value = NameRange> {
    let any = ("[a-e]{0,2}", option::of("[a-e]{1,2}"));
    let any = any.prop_map(|(from, before)| NameRange { from, before });
    prop_oneof![Just(ALL_NAMES.clone()), any]
}

proptest! {
    #[test]
    fn the_index_finds_what_comparing_every_filter_finds(
        subscriptions in subscriptions(), event in event(), names in names(),
    ) {
        let mut catalogue = Catalogue::default();
        let mut expected = Vec::new();
        let members = Members::parse(&event).expect("an object");
        for (name, (filter, expires_ms)) in subscriptions {
            let is_in_range = names.from <= name && !names.ends_before(&name);
            let is_valid = expires_ms.is_none_or(|expires_ms| 1 < expires_ms);
            if is_in_range && is_valid && filter.takes(&members) {
                expected.push(name.clone());
            }
            let name: SubscriptionName = format!("n/t/{name}").parse().expect("a name");
            let url = "https://example.com/".parse().expect("a URL");
            let new = Subscription::new(name, Dialect::Native, url);
            catalogue.add_subscription(Subscription { filter, expires_ms, ..new });
        }
        let topic = "n/t".parse().expect("a topic");
        let event = Event::recall(&event.into(), Input::Custom);
        let found = catalogue.matching(&topic, &names, &event, 1);
        let found: Vec<String> = found.map(|subscription| subscription.name.name.clone()).collect();
        prop_assert_eq!(found, expected);
    }
    #[test]
    fn an_explanation_says_what_the_match_says(subscriptions in subscriptions(), event in event()) {
        let mut catalogue = Catalogue::default();
        for (name, (filter, expires_ms)) in subscriptions {
            let name: SubscriptionName = format!("n/t/{name}").parse().expect("a name");
            let url = "https://example.com/".parse().expect("a URL");
            let new = Subscription::new(name, Dialect::Native, url);
            catalogue.add_subscription(Subscription { filter, expires_ms, ..new });
        }
        let topic = "n/t".parse().expect("a topic");
        let event = Event::recall(&event.into(), Input::Custom);
        let found: Vec<_> = catalogue.matching(&topic, &ALL_NAMES, &event, 1).cloned().collect();
        let explained = event_matches(&catalogue, &topic, &event, 1);
        prop_assert_eq!(explained.len(), catalogue.subscriptions().count());
        for event_match in explained {
            let name = &event_match.subscription.name;
            let is_found = found.iter().any(|found| found.name == *name);
            let filter = &event_match.filter;
            prop_assert_eq!(event_match.matches, is_found, "{} {:?}", name, filter);
            let is_match = filter.matches && !event_match.is_expired;
            prop_assert_eq!(event_match.matches, is_match, "{:?}", filter);
            prop_assert!(parts_agree(&event_match.subscription.filter, filter), "{:?}", filter);
        }
    }
}

/// True if the verdicts of the parts of a filter yield the verdict of the filter.
fn parts_agree(filter: &Filter, explained: &Explanation) -> bool {
    let Explanation { matches, parts, .. } = explained;
    let agree = |filters: &[Filter]| {
        filters.len() == parts.len()
            && filters.iter().zip(parts).all(|(filter, part)| parts_agree(filter, part))
    };
    match filter {
        Filter::All(filters) => agree(filters) && *matches == parts.iter().all(|part| part.matches),
        Filter::Any(filters) => agree(filters) && *matches == parts.iter().any(|part| part.matches),
        Filter::Not(inner) => agree(std::slice::from_ref(&**inner)) && *matches != parts[0].matches,
        Filter::Cesql(expression) => {
            // A column counts characters of the text that is shown.
            let column = explained.problem.as_ref().and_then(|problem| problem.column);
            let length = expression.to_string().chars().count();
            column.is_none_or(|column| (1..=length).contains(&column))
                && (!*matches || explained.problem.is_none())
        }
        Filter::Exact { .. }
        | Filter::ExactText { .. }
        | Filter::Prefix { .. }
        | Filter::Suffix { .. }
        | Filter::Advanced(_) => parts.is_empty(),
    }
}
