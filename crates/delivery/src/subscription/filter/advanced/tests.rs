//! Each operator with values of its own type; `docs/reference/conformance.md` has the others.

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

/// Applies the test to `data.k` with this value.
fn holds(test: &Test, value: &str) -> bool {
    let event = format!(r#"{{"specversion":"1.0","data":{{"k":{value}}}}}"#);
    let key = Key::parse("data.k").unwrap();
    let condition = Condition { key, test: test.clone(), arrays: Arrays::OtherType };
    condition.holds(&Members::parse(&event).unwrap())
}

/// An operator, what it holds for, and what it does not.
type Row = (Test, Vec<&'static str>, Vec<&'static str>);

fn numbers_table() -> Vec<Row> {
    use NumberTest as N;
    let range = || N::InRange(vec![(one("3.14159"), one("999.95")), (one("3000"), one("4000"))]);
    let ends = vec!["3.14159", "999.95", "3000", "4000"];
    vec![
        (Test::Number(N::In(numbers(&["5", "1"]))), vec!["5", "1.0", "50e-1"], vec!["6", "-5"]),
        (Test::NotNumber(N::In(numbers(&["41", "0"]))), vec!["42"], vec!["41", "-0"]),
        (Test::Number(N::LessThan(one("100"))), vec!["99.99", "-1e9"], vec!["100", "101"]),
        (Test::Number(N::LessThanOrEquals(one("100"))), vec!["100", "99"], vec!["100.01"]),
        (Test::Number(N::GreaterThan(one("20"))), vec!["20.01", "1e9"], vec!["20", "19"]),
        (Test::Number(N::GreaterThanOrEquals(one("30"))), vec!["30", "31"], vec!["29.99"]),
        (Test::Number(range()), ends, vec!["3.14158", "1000"]),
        (Test::NotNumber(range()), vec!["1000"], vec!["3500", "3.5"]),
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
        (Test::Text(contains), azure, vec!["\"azur\""]),
        (not_contains, vec!["\"x\""], vec!["\"My Contoso\""]),
        (Test::Text(begins()), vec!["\"Event hubs\""], vec!["\"an event\""]),
        (Test::NotText(begins()), vec!["\"an event\""], vec!["\"MESSAGE\""]),
        (Test::Text(ends()), vec!["\"a.PNG\""], vec!["\"png.txt\""]),
        (Test::NotText(ends()), vec!["\"png.txt\""], vec!["\"a.Jpg\""]),
        (Test::Text(accents), vec!["\"CONTOSO\"", "\"\\u00c9T\u{c9}\""], vec!["\"contoso \""]),
        (Test::NotText(texts(T::In, &["aws"])), vec!["\"aw\""], vec!["\"AWS\""]),
    ]
}

#[test]
fn each_operator_has_its_truth_table() {
    for (test, taken, refused) in [numbers_table(), texts_table()].concat() {
        for value in taken {
            assert!(holds(&test, value), "{test:?} holds for {value}");
        }
        for value in refused {
            assert!(!holds(&test, value), "{test:?} does not hold for {value}");
        }
    }
}

#[test]
fn a_large_whole_number_is_not_its_neighbour() {
    let test = Test::Number(NumberTest::In(numbers(&["9007199254740993"])));
    assert!(holds(&test, "9007199254740993"));
    assert!(!holds(&test, "9007199254740992"));
    assert!(!holds(&test, "9007199254740993.5"));
}

#[test]
fn texts_may_be_compared_with_case() {
    let test = |how| TextTest::with_case(how, vec!["Zoë".to_owned()]);
    for (test, holds_for, fails_for) in [
        (Test::Text(test(TextMatch::In)), r#""Zoë""#, r#""zoë""#),
        (Test::NotText(test(TextMatch::In)), r#""zoë""#, r#""Zoë""#),
        (Test::Text(test(TextMatch::BeginsWith)), r#""Zoë B""#, r#""ZoË B""#),
        (Test::Text(test(TextMatch::EndsWith)), r#""A Zoë""#, r#""A ZOË""#),
        (Test::Text(test(TextMatch::Contains)), r#"" Zoë ""#, r#"" zoë ""#),
    ] {
        assert!(holds(&test, holds_for) && !holds(&test, fails_for), "{test:?}");
    }
}

#[test]
fn a_condition_on_leaves_holds_if_one_of_them_passes() {
    let text = |values: &[&str]| {
        TextTest::with_case(TextMatch::In, values.iter().map(|of| (*of).to_owned()).collect())
    };
    let number = NumberTest::In(numbers(&["5"]));
    for (test, holding, others) in [
        (Test::Text(text(&["a"])), vec![r#"["b",["a"]]"#], vec![r#""A""#, "[]", "null"]),
        (Test::NotText(text(&["a"])), vec![r#"["a","b"]"#, "5", "null"], vec![r#"["a"]"#, "{}"]),
        (Test::Number(number.clone()), vec!["[1,5.0]"], vec!["[1]", r#""5""#]),
        (Test::NotNumber(number), vec!["[1,5]", r#""5""#], vec!["[5]", "[]"]),
        (Test::Bool(true), vec!["[true]"], vec!["false"]),
        (Test::IsNotNull, vec!["null", "0"], vec!["[]", r#"{"a":1}"#]),
        (Test::IsNullOrUndefined, vec!["[]", r#"{"a":1}"#], vec!["null", "0"]),
    ] {
        for (values, expected) in [(holding, true), (others, false)] {
            for value in values {
                let event = format!(r#"{{"n":[{{"k":{value}}}]}}"#);
                let (key, test) = (Key::parse("n.k").unwrap(), test.clone());
                let condition = Condition { key, test, arrays: Arrays::Leaves };
                let members = Members::parse(&event).unwrap();
                assert_eq!(condition.holds(&members), expected, "{condition} {value}");
            }
        }
    }
}
