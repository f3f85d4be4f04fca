//! Filters as read from files, and the events they take.

use super::{loaded, push, read_files, shown, takes, webhook};

fn event(kind: &str, subject: &str, data: &str) -> String {
    format!(
        r#"{{"id":"1","topic":"/t","subject":"{subject}","eventType":"{kind}","eventTime":"2020-08-13T17:18:13Z","data":{data}}}"#
    )
}

fn cloud_event(kind: &str, subject: &str, data: &str) -> String {
    format!(
        r#"{{"specversion":"1.0","id":"1","source":"/t","subject":"{subject}","type":"{kind}","data":{data}}}"#
    )
}

#[test]
fn types_and_subjects_are_compared_in_both_schemas() {
    for (filter, kind, subject, taken) in [
        ("{}", "a", "s", true),
        (
            "{includedEventTypes: null, subjectBeginsWith: '', subjectEndsWith: null}",
            "a",
            "s",
            true,
        ),
        ("{includedEventTypes: [All]}", "a", "s", true),
        ("{includedEventTypes: []}", "a", "s", true),
        ("{includedEventTypes: [b, a]}", "a", "s", true),
        ("{includedEventTypes: [b]}", "a", "s", false),
        ("{subjectBeginsWith: /A/b}", "a", "/a/B/c", true),
        ("{subjectBeginsWith: /A/b}", "a", "/b", false),
        ("{subjectBeginsWith: /A/b, isSubjectCaseSensitive: true}", "a", "/a/B/c", false),
        ("{subjectBeginsWith: /A/b, isSubjectCaseSensitive: true}", "a", "/A/bc", true),
        ("{subjectEndsWith: .JPG}", "a", "x.jpg", true),
        ("{subjectEndsWith: .JPG, isSubjectCaseSensitive: true}", "a", "x.jpg", false),
        (
            "{subjectBeginsWith: x, subjectEndsWith: .jpg, includedEventTypes: [b]}",
            "a",
            "x.jpg",
            false,
        ),
    ] {
        let (subscription, findings) = loaded(&[&webhook(&format!(", filter: {filter}"), "")]);
        assert_eq!(findings, Vec::<String>::new());
        assert_eq!(
            takes(&subscription, &event(kind, subject, "{}")),
            taken,
            "{filter} {kind} {subject}"
        );
        assert_eq!(
            takes(&subscription, &cloud_event(kind, subject, "{}")),
            taken,
            "{filter} {kind} {subject}"
        );
    }
}

#[test]
fn every_operator_is_read() {
    for (operator, values, taken, refused) in [
        ("NumberIn", "values: [5, 1.5]", "1.50", "2"),
        ("NumberIn", "values: [123456789.123456789]", "123456789.123456789", "123456789.12345679"),
        ("NumberIn", "values: [9007199254740993]", "9007199254740993", "9007199254740992"),
        (
            "NumberIn",
            "values: [1e22, 12345678901234567890123]",
            "1.0E+22",
            "12345678901234567890124",
        ),
        ("NumberNotIn", "values: [41, 0]", "1", "41"),
        ("NumberLessThan", "value: 100", "99", "100"),
        ("NumberLessThanOrEquals", "value: 100", "100", "101"),
        ("NumberGreaterThan", "value: 20", "21", "20"),
        ("NumberGreaterThanOrEquals", "value: -30", "-30", "-31"),
        ("NumberInRange", "values: [[3.14159, 999.95], [3000, 4000]]", "999.95", "999.96"),
        ("NumberInRange", "values: [[3.14159, 999.95], [3000, 4000]]", "3.14159", "1000"),
        ("NumberNotInRange", "values: [[3000, 4000]]", "1", "3500"),
        ("BoolEquals", "value: true", "true", "false"),
        ("StringContains", "values: [microsoft, azure]", "\"my Azure\"", "\"x\""),
        ("StringNotContains", "values: [contoso]", "\"x\"", "\"contoso!\""),
        ("StringBeginsWith", "values: [event]", "\"Events\"", "\"an event\""),
        ("StringNotBeginsWith", "values: [event]", "\"an event\"", "\"Events\""),
        ("StringEndsWith", "values: [jpg]", "\"a.JPG\"", "\"jpg.a\""),
        ("StringNotEndsWith", "values: [jpg]", "\"jpg.a\"", "\"a.JPG\""),
        ("StringBeginsWith", "values: [ΟΔΟΣ]", "\"οδοσα\"", "\"οδο\""),
        ("StringEndsWith", "values: [ΟΔΟΣ]", "\"xοδος\"", "\"xοδοσα\""),
        ("StringContains", "values: [ΟΔΟΣ]", "\"xοδοσ y\"", "\"οδο\""),
        ("StringIn", "values: [ΟΔΟΣ]", "\"ΟΔΟΣ\"", "\"ΟΔΟ\""),
        ("StringNotIn", "values: [ΟΔΟΣ]", "\"ΟΔΟ\"", "\"οδοσ\""),
        ("StringIn", "values: [contoso]", "\"Contoso\"", "\"contoso2\""),
        ("StringNotIn", "values: [aws]", "\"x\"", "\"AWS\""),
        ("IsNullOrUndefined", "", "null", "1"),
        ("IsNotNull", "", "1", "null"),
    ] {
        let filter = format!("{{operatorType: {operator}, key: data.key1, {values}}}");
        let of_topic = webhook(&format!(", filter: {{advancedFilters: [{filter}]}}"), "");
        let of_namespace = push("").replace(
            "}}}}}}",
            &format!("}}}}}}}}, filtersConfiguration: {{filters: [{filter}]}}}}}}"),
        );
        for text in [of_topic, of_namespace] {
            let (subscription, findings) = loaded(&[&text]);
            assert_eq!(findings, Vec::<String>::new(), "{text}");
            for (value, expected) in [(taken, true), (refused, false)] {
                let data = format!("{{\"key1\":{value}}}");
                assert_eq!(
                    takes(&subscription, &cloud_event("a", "s", &data)),
                    expected,
                    "{operator} {value}"
                );
                assert_eq!(
                    takes(&subscription, &event("a", "s", &data)),
                    expected,
                    "{operator} {value}"
                );
            }
        }
    }
}

#[test]
fn several_filters_all_have_to_hold_and_arrays_need_enable_advanced_filtering_on_arrays() {
    let filters = "advancedFilters: [{operatorType: StringContains, key: Subject, values: [a, b]}, \
                   {operatorType: NumberIn, key: data.n, values: [1]}]";
    for (flag, subject, data, taken) in [
        ("false", "xB", "{\"n\":1}", true),
        ("false", "x", "{\"n\":1}", false),
        ("false", "xa", "{}", false),
        ("false", "xa", "{\"n\":[1,2]}", false),
        ("true", "xa", "{\"n\":[1,2]}", true),
    ] {
        let text = webhook(
            &format!(", filter: {{{filters}, enableAdvancedFilteringOnArrays: {flag}}}"),
            "",
        );
        let (subscription, _) = loaded(&[&text]);
        assert_eq!(
            takes(&subscription, &event("a", subject, data)),
            taken,
            "{flag} {subject} {data}"
        );
    }
}

#[test]
fn limits_of_filters_are_errors_that_say_them() {
    let filter = "{operatorType: IsNotNull, key: id}";
    let twenty_five = vec![filter; 25].join(", ");
    let values = |count: usize| vec!["a"; count].join(", ");
    let of_values =
        |count: usize| format!("{{operatorType: StringIn, key: id, values: [{}]}}", values(count));
    for (filters, problem) in [
        (twenty_five.clone(), None),
        (format!("{twenty_five}, {filter}"), Some("at most 25 filters are allowed, found 26")),
        (of_values(25), None),
        (
            format!("{}, {}", of_values(13), of_values(13)),
            Some("at most 25 values are allowed in total in all filters, found 26"),
        ),
        (format!("{}, {{operatorType: NumberLessThan, key: id, value: 1}}", of_values(24)), None),
        (
            format!("{}, {{operatorType: NumberLessThan, key: id, value: 1}}", of_values(25)),
            Some("at most 25 values are allowed in total in all filters, found 26"),
        ),
        (format!("{{operatorType: StringIn, key: id, values: [{}]}}", "a".repeat(512)), None),
        (
            format!("{{operatorType: StringIn, key: id, values: [{}]}}", "a".repeat(513)),
            Some("at most 512 characters"),
        ),
        ("{operatorType: StringIn, key: id, values: []}".to_owned(), Some("at least one value")),
        ("{operatorType: StringIn, key: id, values: [7]}".to_owned(), Some("expected text")),
        (
            "{operatorType: NumberIn, key: id, values: ['7']}".to_owned(),
            Some("expected a number, found text; write 7, without quotes"),
        ),
        (
            "{operatorType: NumberIn, key: id, values: [.inf]}".to_owned(),
            Some("not a finite number"),
        ),
        (
            "{operatorType: NumberInRange, key: id, values: [[2, 1]]}".to_owned(),
            Some("the smaller one first"),
        ),
        ("{operatorType: NumberInRange, key: id, values: [3]}".to_owned(), Some("expected a list")),
        (
            "{operatorType: StringIs, key: id, values: [a]}".to_owned(),
            Some("\"StringIs\" is not a valid value; did you mean StringIn?"),
        ),
        ("{operatorType: IsNotNull, key: data..x}".to_owned(), Some("not a valid key")),
        ("{operatorType: IsNotNull}".to_owned(), Some("key is missing")),
        ("{operatorType: NumberLessThan, key: id}".to_owned(), Some("value is missing")),
    ] {
        let found = shown(&read_files(&[&webhook(
            &format!(", filter: {{advancedFilters: [{filters}]}}"),
            "",
        )]));
        match problem {
            None => assert_eq!(found, Vec::<String>::new(), "{filters}"),
            Some(problem) => {
                assert_eq!(found.len(), 1, "{filters}: {found:?}");
                assert!(found[0].contains(": error: ") && found[0].contains(problem), "{found:?}");
            }
        }
    }
}
