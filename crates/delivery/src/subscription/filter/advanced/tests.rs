use super::*;

fn numbers(values: &[&str]) -> Vec<Number> {
    values.iter().map(|value| Number::parse(value).unwrap()).collect()
}

fn one(value: &str) -> Number {
    Number::parse(value).unwrap()
}

fn texts(how: TextMatch, values: &[&str]) -> TextTest {
    TextTest::new(how, &values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
}

/// Whether the test holds for `data.k` with this value; no value at all for `None`.
fn holds(test: &Test, value: Option<&str>, arrays: Arrays) -> bool {
    let data = value.map_or("{}".to_owned(), |value| format!("{{\"k\":{value}}}"));
    let event = format!(r#"{{"specversion":"1.0","data":{data}}}"#);
    let condition = Condition { key: Key::parse("data.k").unwrap(), test: test.clone(), arrays };
    condition.holds(&Members::parse(&event).unwrap())
}

const OTHER_TYPE: Arrays = Arrays::OtherType;

/// An operator, what it holds for, what it does not, and whether it holds for what is missing.
type Row = (Test, Vec<&'static str>, Vec<&'static str>, bool);

/// Values that are no numbers, and these.
fn others(more: &[&'static str]) -> Vec<&'static str> {
    ["\"x\"", "true", "{}", "[5]", "\"\""].iter().chain(more).copied().collect()
}

fn numbers_table() -> Vec<Row> {
    use NumberTest as N;
    let range = || N::InRange(vec![(one("3.14159"), one("999.95")), (one("3000"), one("4000"))]);
    let ends = vec!["3.14159", "999.95", "3000", "4000"];
    vec![
        (
            Test::Number(N::In(numbers(&["5", "1"]))),
            vec!["5", "1.0", "50e-1"],
            others(&["6", "-5"]),
            false,
        ),
        (Test::NotNumber(N::In(numbers(&["41", "0"]))), others(&["42"]), vec!["41", "-0"], true),
        (
            Test::Number(N::LessThan(one("100"))),
            vec!["99.99", "-1e9"],
            others(&["100", "101"]),
            false,
        ),
        (
            Test::Number(N::LessThanOrEquals(one("100"))),
            vec!["100", "99"],
            others(&["100.01"]),
            false,
        ),
        (
            Test::Number(N::GreaterThan(one("20"))),
            vec!["20.01", "1e9"],
            others(&["20", "19"]),
            false,
        ),
        (
            Test::Number(N::GreaterThanOrEquals(one("30"))),
            vec!["30", "31"],
            others(&["29.99"]),
            false,
        ),
        (Test::Number(range()), ends, others(&["3.14158", "1000"]), false),
        (Test::NotNumber(range()), others(&["1000"]), vec!["3500", "3.5"], true),
    ]
}

fn texts_table() -> Vec<Row> {
    use TextMatch as T;
    let contains = texts(T::Contains, &["microsoft", "AZURE"]);
    let begins = || texts(T::BeginsWith, &["event", "message"]);
    let ends = || texts(T::EndsWith, &["jpg", "png"]);
    let accents = texts(T::In, &["contoso", "\u{e9}t\u{e9}"]);
    let azure = vec!["\"Azure Data\"", "\"x MICROSOFT\""];
    let not_contains = Test::NotText(texts(T::Contains, &["contoso"]));
    vec![
        (Test::Text(contains), azure, vec!["\"azur\"", "7", "[\"azure\"]"], false),
        (not_contains, vec!["\"x\"", "7", "[\"contoso\"]"], vec!["\"My Contoso\""], false),
        (Test::Text(begins()), vec!["\"Event hubs\""], vec!["\"an event\"", "{}"], false),
        (Test::NotText(begins()), vec!["\"an event\"", "{}"], vec!["\"MESSAGE\""], false),
        (Test::Text(ends()), vec!["\"a.PNG\""], vec!["\"png.txt\"", "1"], false),
        (Test::NotText(ends()), vec!["\"png.txt\""], vec!["\"a.Jpg\""], false),
        (
            Test::Text(accents),
            vec!["\"CONTOSO\"", "\"\\u00c9T\u{c9}\""],
            vec!["\"contoso \"", "5"],
            false,
        ),
        (Test::NotText(texts(T::In, &["aws"])), vec!["\"aw\"", "5"], vec!["\"AWS\""], true),
    ]
}

fn other_table() -> Vec<Row> {
    let some = || vec!["0", "\"\"", "[]", "{}", "false"];
    vec![
        (Test::Bool(true), vec!["true"], vec!["false", "\"true\"", "1", "[true]", "{}"], false),
        (Test::Bool(false), vec!["false"], vec!["true", "\"\"", "0"], false),
        (Test::IsNullOrUndefined, vec!["null"], some(), true),
        (Test::IsNotNull, some(), vec!["null"], false),
    ]
}

#[test]
fn each_operator_has_its_truth_table() {
    for (test, taken, refused, missing) in [numbers_table(), texts_table(), other_table()].concat()
    {
        for value in taken {
            assert!(holds(&test, Some(value), OTHER_TYPE), "{test:?} holds for {value}");
        }
        for value in refused {
            assert!(!holds(&test, Some(value), OTHER_TYPE), "{test:?} does not hold for {value}");
        }
        assert_eq!(holds(&test, None, OTHER_TYPE), missing, "{test:?} without the key");
    }
}

#[test]
fn elements_of_arrays_are_looked_at_where_the_filter_says_so() {
    let number_in = Test::Number(NumberTest::In(numbers(&["5", "1"])));
    let number_not_in = Test::NotNumber(NumberTest::In(numbers(&["5", "1"])));
    let begins = Test::Text(texts(TextMatch::BeginsWith, &["eu"]));
    let not_begins = Test::NotText(texts(TextMatch::BeginsWith, &["eu"]));
    for (test, value, with_arrays, without) in [
        (&number_in, "[7, 5]", true, false),
        (&number_in, "[7, \"5\", null]", false, false),
        (&number_in, "[]", false, false),
        (&number_in, "[[5]]", false, false),
        (&number_not_in, "[7, 5]", false, true),
        (&number_not_in, "[7, \"5\"]", true, true),
        (&number_not_in, "[]", true, true),
        (&begins, "[\"us/1\", \"EU/2\"]", true, false),
        (&not_begins, "[\"us/1\", \"EU/2\"]", false, true),
        (&Test::Bool(true), "[false, true]", true, false),
        (&Test::IsNotNull, "[null]", true, true),
    ] {
        assert_eq!(holds(test, Some(value), Arrays::Elements), with_arrays, "{test:?} {value}");
        assert_eq!(holds(test, Some(value), OTHER_TYPE), without, "{test:?} {value}");
        let is_no_comparison = *test == Test::IsNotNull;
        assert_eq!(holds(test, Some(value), Arrays::Fail), is_no_comparison, "{test:?} {value}");
    }
    assert!(holds(&number_not_in, Some("7"), Arrays::Fail));
}

#[test]
fn null_is_no_number_the_empty_text_of_a_list_and_false() {
    use TextMatch as T;
    let number = || NumberTest::In(numbers(&["0"]));
    for (test, expected) in [
        (Test::Number(number()), false),
        (Test::NotNumber(number()), false),
        (Test::NotNumber(NumberTest::InRange(vec![(one("1"), one("2"))])), false),
        (Test::Bool(false), true),
        (Test::Bool(true), false),
        (Test::Text(texts(T::In, &["", "a"])), true),
        (Test::Text(texts(T::In, &["null"])), false),
        (Test::NotText(texts(T::In, &["a"])), true),
        (Test::NotText(texts(T::In, &["", "a"])), false),
        (Test::Text(texts(T::Contains, &[""])), false),
        (Test::Text(texts(T::BeginsWith, &[""])), false),
        (Test::NotText(texts(T::EndsWith, &["a"])), false),
        (Test::IsNullOrUndefined, true),
        (Test::IsNotNull, false),
    ] {
        assert_eq!(holds(&test, Some("null"), Arrays::Elements), expected, "{test:?}");
    }
    let holds = |event: &str| {
        let test = Test::NotNumber(NumberTest::In(numbers(&["0"])));
        let condition = Condition { key: Key::parse("n").unwrap(), test, arrays: OTHER_TYPE };
        condition.holds(&Members::parse(event).unwrap())
    };
    assert!(holds(r#"{"specversion":"1.0","n":null}"#), "a null attribute is none");
    assert!(!holds(r#"{"n":null}"#), "other JSON has members, and no attributes");
}

#[test]
fn a_large_whole_number_is_not_its_neighbour() {
    let test = Test::Number(NumberTest::In(numbers(&["9007199254740993"])));
    assert!(holds(&test, Some("9007199254740993"), OTHER_TYPE));
    assert!(!holds(&test, Some("9007199254740992"), OTHER_TYPE));
    assert!(!holds(&test, Some("9007199254740993.5"), OTHER_TYPE));
}

#[test]
fn a_number_among_the_attributes_is_compared_as_a_string_too() {
    let test = Test::Text(texts(TextMatch::BeginsWith, &["5", "1"]));
    let members = Members::parse(r#"{"comexampleothervalue":5,"data":{"n":5}}"#).unwrap();
    let holds = |key: &str| {
        Condition { key: Key::parse(key).unwrap(), test: test.clone(), arrays: OTHER_TYPE }
            .holds(&members)
    };
    assert!(holds("comexampleothervalue"));
    assert!(!holds("data.n"));
}
