use serde_json::{Value as Json, json};

use super::super::{BodyTemplate, PathTemplate, TextTemplate, Values};
use super::{text, values};

#[test]
fn what_is_not_supported_is_an_error_of_compilation() {
    let only = "is not supported; the only statements are `if` and `for`";
    let unchanged = "a secret must be sent unchanged; only one of `base64`, `tojson` and `urlencode` may be applied to it, once";
    for (template, reason) in [
        ("{% set x = 1 %}", format!("`set` {only}")),
        ("{% set x %}a{% endset %}", format!("`set` {only}")),
        ("{% macro m() %}{% endmacro %}", format!("`macro` {only}")),
        ("{% include 'x' %}", format!("`include` {only}")),
        ("{% import 'x' as y %}", format!("`import` {only}")),
        ("{% from 'x' import y %}", format!("`from` {only}")),
        ("{% extends 'x' %}", format!("`extends` {only}")),
        ("{% block x %}{% endblock %}", format!("`block` {only}")),
        ("{% filter upper %}x{% endfilter %}", format!("`filter` {only}")),
        ("{% do f() %}", format!("`do` {only}")),
        ("{% autoescape true %}{% endautoescape %}", format!("`autoescape` {only}")),
        ("{% call f() %}{% endcall %}", format!("`call` {only}")),
        ("{% with a = 1 %}{% endwith %}", format!("`with` {only}")),
        ("{% break %}", format!("`break` {only}")),
        ("{% for x in events recursive %}{% endfor %}", "`recursive` is not supported".to_owned()),
        ("{% for x, y in events %}{% endfor %}", "a loop must have exactly one name before `in`".to_owned()),
        ("{% for event in events %}{% endfor %}", "the name `event` is reserved; choose another name".to_owned()),
        ("{{ loop.index }}", "`loop` can be used only inside `for`".to_owned()),
        ("{% for x in events %}{{ loop.cycle }}{% endfor %}",
            "`loop` has no member `cycle`; its members are index, index0, first, last, length".to_owned()),
        ("{{ evnt.id }}", "there is no `evnt`; a path begins with event, events, subscription, attempt or the name of \
            a loop's item".to_owned()),
        ("{{ range(9) }}", "there is no function `range`; the only function is `secret`".to_owned()),
        ("{{ event.id.upper() }}", "values have no functions; the only function is `secret`".to_owned()),
        ("{{ event.id | safe }}", "there is no filter `safe`; the filters are default, tojson, date, base64, upper, \
            lower, replace, join, urlencode, hmac, length, first and last".to_owned()),
        ("{{ event.id is even }}", "there is no test `even`; the tests are defined, undefined, none, string, number, \
            boolean, mapping, sequence".to_owned()),
        ("{% for a in events if loop.first %}{% endfor %}", "`loop` cannot be used in the filter of a loop".to_owned()),
        ("{{ secret('A')[2:] }}", unchanged.to_owned()),
        ("{{ secret('A') | base64 | base64 }}", unchanged.to_owned()),
        ("{{ secret('A') | tojson | tojson }}", unchanged.to_owned()),
        ("{{ ('a' ~ secret('A')) | replace('a', 'b') }}", unchanged.to_owned()),
        ("{% for a in [secret('A')] %}{{ a | upper }}{% endfor %}", unchanged.to_owned()),
        ("{{ event.id | upper(1) }}", "the filter `upper` accepts no arguments".to_owned()),
        ("{{ event.id | replace('a') }}", "write replace(old, new)".to_owned()),
        ("{{ event.id | default }}", "write default(value) or default(value, true)".to_owned()),
        ("{{ event.id | default(value=1) }}", "named arguments and arguments with `*` are not supported".to_owned()),
        ("{{ event.time | date(event.id) }}", "write date('%Y-%m-%d') with a format in quotes".to_owned()),
        ("{{ event.time | date('%!') }}",
            "the date format is not a strftime format, such as %Y-%m-%d".to_owned()),
        ("{{ secret(event.id) }}", "write secret('NAME') with the name of a secret in quotes".to_owned()),
        ("{{ secret }}", "there is no `secret`; a path begins with event, events, subscription, attempt or the name of \
            a loop's item".to_owned()),
        ("{{ event.id | hmac }}", "write hmac('NAME') with the name of a secret in quotes".to_owned()),
        ("{{ 'a' * 1000000000 }}", "arithmetic requires numbers; join strings with `~`".to_owned()),
        ("{{ 2 ** 9 }}", "`**` is not supported".to_owned()),
        ("{{ event.id[::2] }}", "a slice cannot have a step; write [start:stop]".to_owned()),
        ("{{ {event.id: 1} }}", "the names in an object must be strings in quotes".to_owned()),
        ("{{ {'a': 1, 'a': 2} }}", "the name `a` occurs twice in one object".to_owned()),
        ("{{ 99999999999999999999 }}", "a number is too large".to_owned()),
        ("{{ event.id", "not a valid template: unexpected end of input, expected end of variable block".to_owned()),
        ("{% if event %}", "not a valid template: unexpected end of input, expected end of block".to_owned()),
        ("{{ }}", "not a valid template: unexpected end of variable block".to_owned()),
    ] {
        let error = BodyTemplate::compile(&json!({ "a": [0, template] }), "spec.body").unwrap_err();
        let places: Vec<&str> = error.iter().map(|error| error.place.as_str()).collect();
        assert_eq!((places, &error[0].reason), (vec!["spec.body.a[1]"], &reason), "{template}");
    }
}

#[test]
fn every_wrong_string_of_a_body_is_reported_with_its_place_and_tag() {
    let template = json!({
        "a": "ok {{ event.id }} and {{ nope.id }}", "b c": ["{% set x = 1 %}"],
        "long": format!("{{{{ nope.{} }}}}", "x".repeat(200)), "fine": "{{ event.id }}",
    });
    let errors = BodyTemplate::compile(&template, "spec.destination.body").unwrap_err();
    let found: Vec<(&str, &str)> =
        errors.iter().map(|error| (error.place.as_str(), error.expression.as_str())).collect();
    let long = format!("{{{{ nope.{}…", "x".repeat(111));
    assert_eq!(
        found,
        [
            ("spec.destination.body.a", "{{ nope.id }}"),
            ("spec.destination.body[\"b c\"][0]", "{% set x = 1 %}"),
            ("spec.destination.body.long", &*long),
        ]
    );
    let error = &errors[1];
    assert_eq!(
        error.to_string(),
        "spec.destination.body[\"b c\"][0]: `{% set x = 1 %}`: `set` is not supported; the only statements are `if` \
         and `for`"
    );
}

#[test]
fn names_of_members_and_other_constants_are_literal() {
    let template =
        json!({ "{{ event.id }}": 1, "q\"": "plain \"\n", "n": 1.5, "z": [null, true, {}] });
    let compiled = BodyTemplate::compile(&template, "body").unwrap();
    let rendered: Json =
        serde_json::from_slice(&compiled.render(&values(json!(null))).unwrap()).unwrap();
    assert_eq!(rendered, template);
    assert!(!compiled.reads_event());
}

#[test]
fn secrets_are_listed_before_an_event_arrives() {
    let template = json!([
        "{{ secret('B') }}",
        "{% if event.data.no %}{{ event.id | hmac('A') }}{% endif %}",
        "{{ secret('B') }}",
    ]);
    let compiled = BodyTemplate::compile(&template, "body").unwrap();
    assert_eq!(compiled.secrets().collect::<Vec<_>>(), ["A", "B"]);
    let path = PathTemplate::compile("https://a.example/{{ secret('P') }}", "url").unwrap();
    assert_eq!(path.secrets().collect::<Vec<_>>(), ["P"]);
    assert_eq!(text("{{ secret('T') }}").unwrap().secrets().collect::<Vec<_>>(), ["T"]);
}

#[test]
fn compiled_templates_are_shared_between_threads() {
    fn is_shared<T: Send + Sync + Clone + 'static>() {}
    is_shared::<BodyTemplate>();
    is_shared::<TextTemplate>();
    is_shared::<PathTemplate>();
    // One thread renders a request.
    fn is_moved<T: Send>() {}
    is_moved::<Values>();
}
