use std::borrow::Cow;

use super::*;
use crate::event::Members;

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/shop","type":"order.created","subject":"größe","count":5,
    "zero":-0,"part":1.5,"large":2147483648,"yes":true,"word":"TRUE","five":"05","none":null,"empty":"","list":[],
    "quote":"a'b\"c","data":"x"}"#;

fn cesql(text: &str) -> Cesql {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns the value for the event, and the error.
fn evaluated(text: &str) -> (Value<'static>, Option<EvaluationError>) {
    let members = Members::parse(EVENT).unwrap();
    let cesql = cesql(text);
    let (value, error) = cesql.evaluate(&members);
    let value = match value {
        Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
        Value::Integer(number) => Value::Integer(number),
        Value::Boolean(is_true) => Value::Boolean(is_true),
    };
    (value, error)
}

fn takes(text: &str) -> bool {
    cesql(text).takes(&Members::parse(EVENT).unwrap())
}

#[test]
fn each_expression_is_written_as_it_was_understood() {
    for (text, written) in [
        ("type='a'", "type = 'a'"),
        ("Type <> \"it's\"", r"type != 'it\'s'"),
        ("NOT type = 'a'", "(NOT type) = 'a'"),
        ("not (type = 'a')", "NOT (type = 'a')"),
        ("NOT type LIKE 'a%'", "(NOT type) LIKE 'a%'"),
        ("NOT EXISTS subject", "NOT EXISTS subject"),
        ("a AND b OR c", "a AND (b OR c)"),
        ("a OR b AND c", "a OR (b AND c)"),
        ("a AND b AND c", "a AND b AND c"),
        ("a AND (b AND c)", "a AND (b AND c)"),
        ("(a xor b) and not c", "(a XOR b) AND NOT c"),
        ("1+2*3-4 = - -x", "1 + 2 * 3 - 4 = (--x)"),
        ("1-(2-3)", "1 - (2 - 3)"),
        ("(1+2)*3", "(1 + 2) * 3"),
        ("4 -1", "4 - 1"),
        ("4 - -1", "4 - -1"),
        ("-(1)", "-(1)"),
        ("- 1", "-(1)"),
        ("--1", "--1"),
        ("+7", "7"),
        ("a = b = c", "(a = b) = c"),
        ("a = (b < c)", "a = (b < c)"),
        ("a + b LIKE 'c'", "a + b LIKE 'c'"),
        ("(a + b) NOT LIKE 'c'", "(a + b) NOT LIKE 'c'"),
        ("a in (1 , 'b',c) = TRUE", "a IN (1, 'b', c) = TRUE"),
        ("concat_ws ( ',' , A , substring(b,1) )", "CONCAT_WS(',', a, SUBSTRING(b, 1))"),
        (r"'a\b\'c'", r"'a\b\'c'"),
        (r#""\'""#, r#""\'""#),
        (r"'\\\''", r"'\\\''"),
        ("1a = 007", "1a = 7"),
        ("tRUE", "TRUE"),
    ] {
        let first = cesql(text);
        assert_eq!(first.to_string(), written, "{text}");
        assert_eq!(cesql(written), first, "{text}");
    }
}

#[test]
fn what_is_no_expression_is_refused_where_it_ends_to_be_one() {
    let deep = |open: &str, close: &str, count: usize| {
        format!("{}1{}", open.repeat(count), close.repeat(count))
    };
    for (text, expected) in [
        ("", "at character 1: expected a value or the name of an attribute, found the end"),
        ("type =", "at character 7: expected a value or the name of an attribute, found the end"),
        ("'ö' = ö", "at character 7: this character is not allowed in an expression"),
        ("type == 'a'", "at character 7: expected a value or the name of an attribute, found ="),
        ("type = 'a", "at character 8: the string has no closing quote"),
        (r"'a\'", "at character 1: the string has no closing quote"),
        ("'it''s'", "at character 5: expected an operator or the end, found a string"),
        ("type a", "at character 6: expected an operator or the end, found a name"),
        ("x LIKE 123", "at character 8: expected a string in quotes, found a number"),
        ("x LIKE y", "at character 8: expected a string in quotes, found a name"),
        ("x NOT y", "at character 7: expected LIKE or IN, found a name"),
        ("x IN ()", "at character 7: expected a value or the name of an attribute, found )"),
        ("x IN 1", "at character 6: expected (, found a number"),
        ("x IN (1", "at character 8: expected ), found the end"),
        ("(1", "at character 3: expected ), found the end"),
        ("1)", "at character 2: expected an operator or the end, found )"),
        (
            "EXISTS 'a'",
            "at character 8: expected a value or the name of an attribute, found a string",
        ),
        ("and = 1", "at character 1: expected a value or the name of an attribute, found AND"),
        (
            "my_ext = 1",
            "at character 1: expected a value or the name of an attribute, found a name",
        ),
        ("+ 5", "at character 1: expected a value or the name of an attribute, found +"),
        ("2147483648", "at character 1: a number must be -2147483648 to 2147483647"),
        ("a = -2147483649", "at character 5: a number must be -2147483648 to 2147483647"),
        ("a AND foo(1, 2)", "at character 7: no function FOO accepts 2 arguments"),
        ("LEFT('a')", "at character 1: no function LEFT accepts 1 arguments"),
        (&deep("(", ")", 33), "at character 34: the expression is nested more than 32 levels deep"),
        (
            &deep("NOT ", "", 40),
            "at character 133: the expression is nested more than 32 levels deep",
        ),
        (
            &deep("1 + ", "", 40),
            "at character 1: the expression is nested more than 32 levels deep",
        ),
        (&deep("1 OR ", "", 500), "the expression has more than 1000 words, values and symbols"),
        (&"x".repeat(8_193), "the expression is longer than 8192 bytes"),
        (
            &"a=a OR ".repeat(200),
            "at character 1401: expected a value or the name of an attribute, found the end",
        ),
    ] {
        let error = text.parse::<Cesql>().expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn an_expression_that_would_be_too_large_when_it_is_written_is_too_large() {
    let long = vec![format!("a='{}'", "x".repeat(70)); 105].join("OR ");
    // The canonical text has each of these in parentheses.
    let many = vec!["a=b=c"; 166].join(" OR ");
    for (text, problem) in [(long, ParseError::TooLong), (many, ParseError::TooManyTokens)] {
        assert!(text.parse::<Cesql>().is_ok(), "{text}");
        assert_eq!(Cesql::read(&text).expect_err(&text), problem);
    }
    let most = vec!["a=b=c"; 125].join(" OR ");
    let cesql = Cesql::read(&most).expect("it is read").cesql;
    assert_eq!(cesql.to_string().parse(), Ok(cesql));
}

#[test]
fn the_author_is_told_what_is_easily_mistaken() {
    for (text, mistakable_at, never_boolean) in [
        ("type = 'a' AND subject = 'b' AND NOT yes", None, false),
        ("a AND b OR c", Some(9), false),
        ("a AND (b OR c)", None, false),
        ("b = 1 AND NOT type = 'a'", Some(11), false),
        ("NOT type LIKE 'a'", Some(1), false),
        ("NOT (type LIKE 'a')", None, false),
        ("type NOT LIKE 'a'", None, false),
        ("'true'", None, true),
        ("1 + 1", None, true),
        ("LENGTH(type)", None, true),
        ("yes", None, false),
    ] {
        let reading = Cesql::read(text).unwrap();
        assert_eq!(
            (reading.mistakable_at, reading.never_boolean),
            (mistakable_at, never_boolean),
            "{text}"
        );
    }
}

#[test]
fn attributes_have_the_types_of_json_and_data_is_none() {
    for (text, value) in [
        ("subject", Value::Text("größe".into())),
        ("count", Value::Integer(5)),
        ("zero", Value::Text("-0".into())),
        ("part", Value::Text("1.5".into())),
        ("large", Value::Text("2147483648".into())),
        ("yes", Value::Boolean(true)),
        ("quote", Value::Text("a'b\"c".into())),
        ("LENGTH(subject)", Value::Integer(5)),
        ("UPPER(subject)", Value::Text("GRÖSSE".into())),
    ] {
        assert_eq!(evaluated(text), (value, None), "{text}");
    }
    for name in ["none", "list", "data", "missing"] {
        let missing = (Value::Boolean(false), Some(EvaluationError::MissingAttribute));
        assert_eq!(evaluated(name), missing, "{name}");
        assert!(!takes(&format!("EXISTS {name}")), "{name}");
    }
    assert!(takes("EXISTS empty AND empty = ''"));
}

#[test]
fn an_event_matches_only_what_is_true_without_an_error() {
    for (text, expected) in [
        ("yes", true),
        ("word", false),
        ("BOOL(word)", true),
        ("count", false),
        ("five = 5", true),
        ("five = '5'", false),
        ("five IN (5)", false),
        ("count IN ('05', 'x')", true),
        ("count IN ('x', '05')", false),
        ("count IN ('05', missing)", true),
        ("missing = 'a' OR yes", false),
        ("yes OR missing = 'a'", true),
        ("count != 6 AND NOT (missing = 'a')", false),
        ("NOT 0", false),
        ("NOT 10", false),
        ("2147483647 + 1 != 0", false),
        ("-(-2147483648) != 0", false),
        ("-2147483648 / -1 != 0", false),
        ("-2147483648 % -1 = 0", true),
        ("-7 / 2 = -3 AND -7 % 2 = -1", true),
        ("LEFT(type, -1) = type", false),
        ("SUBSTRING(subject, 3, -1) = ''", false),
        ("SUBSTRING(subject, -3, 2) = 'öß'", true),
        ("RIGHT(subject, 3) = 'öße'", true),
        ("IS_INT(five) AND NOT IS_INT(type) AND IS_BOOL(word)", true),
    ] {
        assert_eq!(takes(text), expected, "{text}");
    }
}

#[test]
fn an_event_with_too_much_text_does_not_match() {
    let event = |length: usize| format!(r#"{{"type":"{}"}}"#, "a".repeat(length));
    let takes = |text: &str, length| cesql(text).takes(&Members::parse(&event(length)).unwrap());
    assert!(takes("type LIKE '%a'", 10_000) && takes("EXISTS type", 10_000));
    assert!(!takes("type LIKE '%a'", 300_000) && !takes("EXISTS type", 300_000));
    let slow = format!("type LIKE '%{}b%'", "a".repeat(100));
    assert!(!takes(&slow, 10_000) && !takes(&format!("NOT ({slow})"), 10_000));
    let concat = format!("LENGTH(CONCAT({})) > 0", vec!["type"; 100].join(", "));
    assert!(takes(&concat, 1_000) && !takes(&concat, 2_000));
}

#[test]
fn what_is_implied_is_certain() {
    let all = "every event";
    for (text, implied) in [
        ("type = 'a'", r#"type is "a""#),
        ("type = 5", all),
        ("'a' = type", all),
        ("type != 'a'", all),
        ("type LIKE 'a.%'", r#"type begins with "a.""#),
        (r"type LIKE 'a\_b'", r#"type is "a_b""#),
        ("type LIKE '%a'", r#"type begins with """#),
        ("type NOT LIKE 'a%'", all),
        (
            "type IN ('a', '+5', 'TRUE')",
            r#"(type is "a" or type is "+5" or type is "5" or type is "TRUE" or type is "true")"#,
        ),
        ("type IN ('a', b)", all),
        ("type NOT IN ('a')", all),
        ("type = 'a' AND count > 3", r#"(type is "a" and every event)"#),
        ("type = 'a' OR subject = 'b'", r#"(type is "a" or subject is "b")"#),
        ("type = 'a' XOR subject = 'b'", all),
        ("NOT (type = 'a')", all),
    ] {
        assert_eq!(cesql(text).implied().to_string(), implied, "{text}");
    }
}
