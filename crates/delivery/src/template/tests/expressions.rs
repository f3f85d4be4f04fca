use serde_json::json;

use super::super::{BodyTemplate, Values};
use super::{ATTEMPT, ORIGIN, body, event, order, text, values};

#[test]
fn a_string_that_is_one_expression_keeps_its_type() {
    for (template, json) in [
        ("{{ event.data.n }}", "5"),
        ("{{event.data.f}}", "1.5"),
        ("{{- event.data.yes -}}", "true"),
        ("{{ event.data.nothing }}", "null"),
        ("{{ event.data.list }}", r#"["a","b","c"]"#),
        ("{{ event.data.object }}", r#"{"a":[true],"z":1}"#),
        ("{{ event.data.text }}", r#""Größe \"L\"""#),
        ("{{ event.data.big }}", "9007199254740993"),
        ("{{ event.data.max }}", "18446744073709551615"),
        ("{{ event.data.min }}", "-9223372036854775808"),
        ("{{ event.data['a b'] }}", r#""spaced""#),
        ("{{ event.data.list[0] }}", r#""a""#),
        ("{{ event.data.list[-1] }}", r#""c""#),
        ("{{ event.data.list[1:] }}", r#"["b","c"]"#),
        ("{{ event.data.text[:-4] }}", r#""Größe""#),
        ("{{ [event.id, event.data.n, none] }}", r#"["e-1",5,null]"#),
        ("{{ {'id': event.id, 'o': {'n': 1}} }}", r#"{"id":"e-1","o":{"n":1}}"#),
        ("{{ events | length }}", "1"),
        ("{{ subscription }}", r#"{"name":"billing","namespace":"shop","topic":"orders"}"#),
        ("{{ attempt.number }}", "3"),
        ("{{ attempt.time }}", r#""2026-11-20T07:03:00.1230000Z""#),
        ("{{ 9007199254740993 }}", "9007199254740993"),
        (" {{ event.data.n }}", r#"" 5""#),
        ("{{ event.data.n }}{{ event.data.n }}", r#""55""#),
    ] {
        assert_eq!(body(template).as_deref(), Ok(json), "{template}");
    }
}

#[test]
fn a_string_with_other_text_is_rendered_as_text() {
    for (template, json) in [
        ("no tags: { } }} %}", r#""no tags: { } }} %}""#),
        ("Order {{ event.subject }}\n", r#""Order orders/7\n""#),
        ("{{ event.data.text }}!", r#""Größe \"L\"!""#),
        ("x{{ event.data.nothing }}{{ event.data.yes }}{{ event.data.f }}", r#""xnulltrue1.5""#),
        ("x{{ event.data.object }}", r#""x{\"a\":[true],\"z\":1}""#),
        ("x{{ event.data.max }}", r#""x18446744073709551615""#),
        ("x{{ event.data.tag }}", r#""x{{ event.id }}{% if %}""#),
        ("{% raw %}{{ event.id }}{% endraw %}", r#""{{ event.id }}""#),
        ("{# a comment #}{{ '{{' }}!", r#""{{!""#),
        (
            "{% if event.data.n > 3 %}many{% elif event.data.n %}few{% else %}none{% endif %}",
            r#""many""#,
        ),
        (
            "{% for x in event.data.list %}{{ loop.index }}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}",
            r#""1a,2b,3c""#,
        ),
        ("{% for x in event.data.none %}x{% else %}empty{% endfor %}", r#""empty""#),
        (
            "{% for key in event.data.object %}{{ key }}={{ event.data.object[key] }};{% endfor %}",
            r#""a=[true];z=1;""#,
        ),
        (
            "{% for x in event.data.list if x != 'b' %}{{ x }}{{ loop.length }}{% endfor %}",
            r#""a2c2""#,
        ),
        (
            "{% for x in event.data.list[:2] %}{% for y in event.data.numbers %}{{ x }}{{ y }}{% endfor %}{% endfor %}",
            r#""a1a2.5b1b2.5""#,
        ),
        ("{%- for e in events %} {{ e.id }} {%- endfor -%} ", r#"" e-1""#),
    ] {
        assert_eq!(body(template).as_deref(), Ok(json), "{template}");
    }
}

#[test]
fn filters_and_operators_compute_what_jinja_computes() {
    for (expression, json) in [
        ("event.data.missing | default('x')", r#""x""#),
        ("event.data.missing.deeper[0] | default(1)", "1"),
        ("event.data.n | default('x')", "5"),
        ("event.data.nothing | default('x')", "null"),
        ("event.data.empty | default('x', true)", r#""x""#),
        ("event.data.object | tojson", r#""{\"a\":[true],\"z\":1}""#),
        ("event.data.html | tojson", r#""\"<b>&'\"""#),
        ("event.time | date('%Y-%m-%d %H:%M:%S')", r#""2026-11-20 07:03:00""#),
        ("'2026-11-20T07:03:00+02:00' | date('%H:%M %Z')", r#""05:03 UTC""#),
        ("event.data.seconds | date('%-d.%-m.%y')", r#""20.11.26""#),
        ("0.5 | date('%s %3f')", r#""0 500""#),
        ("event.data.text | base64", r#""R3LDtsOfZSAiTCI=""#),
        ("'straße' | upper", r#""STRASSE""#),
        ("'ÄB' | lower", r#""äb""#),
        ("'a b&ä' | urlencode", r#""a+b%26%C3%A4""#),
        ("'a.b.c' | replace('.', '--')", r#""a--b--c""#),
        ("event.data.list | join(', ')", r#""a, b, c""#),
        ("event.data.numbers | join", r#""12.5""#),
        (
            "event.id | hmac('SIGNING')",
            r#""b46221d158deb7b1b0c2986bc11e73dc964204b10af7fe65770a52511faf7af1""#,
        ),
        ("secret('API_KEY')", r#""s3cret""#),
        ("'Bearer ' ~ secret(\"API_KEY\")", r#""Bearer s3cret""#),
        ("event.data.text | length", "9"),
        ("event.data.object | length", "2"),
        ("event.data.list | first ~ event.data.list | last", r#""ac""#),
        ("event.data.none | first | default('none')", r#""none""#),
        ("event.data.n + 1", "6"),
        ("event.data.n * 1.5", "7.5"),
        ("event.data.n / 2", "2.5"),
        ("-7 // 2", "-4"),
        ("7 // -2", "-4"),
        ("-7 % 3", "2"),
        ("7 % -3", "-2"),
        ("-event.data.f", "-1.5"),
        ("event.data.big - 1", "9007199254740992"),
        ("'a' ~ 1 ~ true ~ none ~ [1]", r#""a1truenull[1]""#),
        ("1 < 2 <= 2", "true"),
        ("'b' > 'a' and 'x'", r#""x""#),
        ("event.data.empty or 'other'", r#""other""#),
        ("not event.data.none", "true"),
        ("'b' in event.data.list", "true"),
        ("'x' not in event.data.list", "true"),
        ("'z' in event.data.object", "true"),
        ("'ö' in event.data.text", "true"),
        ("event.data.object == {'a': [true], 'z': 1.0}", "true"),
        ("event.data.list != ['a', 'b']", "true"),
        ("1 == '1'", "false"),
        ("'yes' if event.data.yes else 'no'", r#""yes""#),
        ("event.data.missing is defined", "false"),
        ("event.data.missing is undefined", "true"),
        (
            "event.data.nothing is none and event.data.text is string and event.data.n is not string",
            "true",
        ),
        (
            "event.data.n is number and event.data.no is boolean and event.data.object is mapping",
            "true",
        ),
        ("event.data.list is sequence", "true"),
    ] {
        assert_eq!(body(&format!("{{{{ {expression} }}}}")).as_deref(), Ok(json), "{expression}");
    }
}

#[test]
fn an_expression_without_a_result_is_an_error() {
    let missing = "does not exist; add `| default(…)` if it may be missing";
    let no_time = "the value is not a time: expected RFC 3339 such as 2026-11-20T07:03:00Z, or seconds since 1970";
    let arithmetic = |kind| {
        format!("arithmetic requires numbers, but an operand is a {kind}; join strings with `~`")
    };
    for (expression, reason) in [
        ("event.data.missing", format!("`event.data.missing` {missing}")),
        ("event.data.a.b['c d'][0]", format!("`event.data.a.b[\"c d\"][0]` {missing}")),
        ("event.data.list[9] ~ 'x'", format!("`event.data.list[9]` {missing}")),
        ("event.data.missing or 1", format!("`event.data.missing` {missing}")),
        ("'x' if event.data.no", format!("the value {missing}")),
        ("event.data.text.missing == 1", format!("`event.data.text.missing` {missing}")),
        ("event.data.missing | upper", format!("`event.data.missing` {missing}")),
        ("[event.data.missing]", format!("`event.data.missing` {missing}")),
        ("event.data.n | upper", "`upper` needs a string, but the value is a number".to_owned()),
        ("event.data.text | join", "`join` needs a list, but the value is a string".to_owned()),
        (
            "event.data.n | length",
            "`length` needs a string, a list or an object, but the value is a number".to_owned(),
        ),
        (
            "'x' | replace(event.data.empty, 'y')",
            "`replace` needs a string to replace, but the first argument is empty".to_owned(),
        ),
        ("event.data.text | date('%Y')", no_time.to_owned()),
        ("event.data.max | date('%Y')", no_time.to_owned()),
        ("event.data.text + event.data.text", arithmetic("string")),
        ("event.data.text * event.data.n", arithmetic("string")),
        ("event.data.list * 1000000000", arithmetic("list")),
        ("event.data.n / 0", "the divisor is 0".to_owned()),
        ("event.data.n % 0.0", "the divisor is 0".to_owned()),
        ("event.data.max * event.data.max", "the result is too large".to_owned()),
        ("-event.data.max", "the result is too large".to_owned()),
        (
            "event.data.n < 'x'",
            "a number and a string cannot be compared; compare two numbers or two strings"
                .to_owned(),
        ),
        ("1 in event.data.n", "a number cannot be in a number".to_owned()),
        (
            "event.data.n[:1]",
            "only strings and lists have slices, but the value is a number".to_owned(),
        ),
        (
            "event.data.list['a':]",
            "a position must be a whole number, but the value is a string".to_owned(),
        ),
        (
            "event.data.list[none]",
            "the key in brackets is null; use a string or a whole number".to_owned(),
        ),
        ("secret('OTHER')", "the secret `OTHER` was not loaded".to_owned()),
        ("event.id | hmac('OTHER')", "the secret `OTHER` was not loaded".to_owned()),
    ] {
        assert_eq!(body(&format!("{{{{ {expression} }}}}")), Err(reason), "{expression}");
    }
    let in_loop = "{% for x in event.data.n %}{% endfor %}";
    assert_eq!(
        body(in_loop),
        Err("a loop needs a list or an object, but the value is a number".to_owned())
    );
}

#[test]
fn a_failure_of_rendering_names_the_place_and_the_tag_but_no_value() {
    let template =
        json!({ "a": ["x {% if event.data.nothing.x %}{% endif %}", "{{ event.data.text + 1 }}"] });
    let compiled = BodyTemplate::compile(&template, "body").unwrap();
    let error = compiled.render(&values(order())).unwrap_err();
    assert_eq!((&*error.place, &*error.expression), ("body.a[0]", "{% if event.data.nothing.x %}"));
    let value = "personal-value";
    let data = json!({ "v": value, "o": { value: value }, "l": [value] });
    for expression in [
        "event.data.v + 1",
        "event.data.v | date('%Y')",
        "event.data.v < 1",
        "event.data.o < event.data.l",
        "event.data[event.data.v]",
        "event.data.l[event.data.v:]",
        "-event.data.v",
        "event.data.o | upper",
        "event.data.v in 5",
        "event.data.l | first | join",
        "event.data.o[event.data.v].x.y",
        "1 + secret('API_KEY')",
        "event.data.l[event.data.v]",
    ] {
        let compiled = text(&format!("{{{{ {expression} }}}}")).unwrap();
        let error = compiled.render_text(&values(data.clone())).unwrap_err().to_string();
        assert!(!error.contains(value) && !error.contains("s3cret"), "{error}");
    }
}

#[test]
fn a_batch_has_events_but_no_event() {
    let events = vec![event(json!(1)), event(json!(2))];
    let batch = Values::of_batch(events, ORIGIN, ATTEMPT);
    let sum = text("{% for e in events %}{{ e.data }};{% endfor %}").unwrap();
    assert_eq!(sum.render_text(&batch).as_deref(), Ok("1;2;"));
    assert!(!sum.reads_event());
    let single = text("{{ event.id }}").unwrap();
    assert!(single.reads_event() && single.render_text(&batch).is_err());
}
