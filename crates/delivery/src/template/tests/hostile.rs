//! Templates and events that were made to use up time or memory. Each row is measured in fuel and
//! in the length of the output, never by a clock.

use serde_json::{Value as Json, json};

use super::super::limits::{FUEL_MAX, RENDERED_MAX_BYTES};
use super::super::{Attempt, BodyTemplate, Origin, PathTemplate, TextTemplate, Values};

const WORK: &str = "the template exceeds its computation limit; use smaller values, fewer loops or \
                    fewer expressions";
const LONG: &str = "the result is longer than 1048576 bytes";

fn values(data: Json) -> Values {
    let origin = Origin { namespace: "n", topic: "t", name: "s" };
    let attempt = Attempt { number: 1, delivery_id: "d", time_ms: 0 };
    Values::of_event(json!({ "id": "e", "data": data }), origin, attempt)
}

/// The reason of the failure or the length of the output, and the fuel that was used.
fn measured(template: &str, values: &Values) -> (Result<usize, String>, u64) {
    let compiled = match TextTemplate::compile(template, "t") {
        Ok(compiled) => compiled,
        Err(error) => return (Err(error.reason), 0),
    };
    let before = values.budget().spent();
    let rendered = compiled.render_text(values);
    let spent = values.budget().spent() - before;
    (rendered.map(|text| text.len()).map_err(|error| error.reason), spent)
}

fn nested(count: usize, body: &str) -> String {
    format!(
        "{}{body}{}",
        "{% for a in event.data.list %}".repeat(count),
        "{% endfor %}".repeat(count)
    )
}

#[test]
fn work_is_bounded_by_fuel_and_output() {
    let big = "x".repeat(500_000);
    let data = json!({
        "big": big, "same": big, "list": vec![0; 1_000], "long": vec![1; 250_000], "alike": vec![1; 250_000],
        "controls": "\u{1}".repeat(170_000),
    });
    let doubled = |times: usize| {
        let mut expression = "event.data.big".to_owned();
        for _ in 0..times {
            expression = format!("({expression} ~ {expression})");
        }
        format!("{{{{ {expression} }}}}")
    };
    for (template, reason) in [
        (nested(2, ""), WORK),
        (nested(2, "{{ 1 }}"), WORK),
        (nested(8, ""), WORK),
        (nested(1, "{{ event.data.big }}"), LONG),
        (nested(1, "{{ event.data.big == event.data.same }}"), WORK),
        (nested(1, "{{ event.data.long == event.data.alike }}"), WORK),
        (nested(1, "{{ 'y' in event.data.big }}"), WORK),
        (nested(1, "{{ 2 in event.data.long }}"), WORK),
        (nested(1, "{% if event.data.big[1:] %}{% endif %}"), WORK),
        (nested(1, "{% if event.data.big | upper %}{% endif %}"), WORK),
        (nested(1, "{% if event.data.big | base64 %}{% endif %}"), WORK),
        (nested(1, "{{ event.data.big | length }}"), WORK),
        (nested(1, "{% if event.data | tojson %}{% endif %}"), LONG),
        (nested(1, "{% if event.data.long | join %}{% endif %}"), WORK),
        (nested(1, "{% for x in event.data.long %}{% endfor %}"), WORK),
        (
            nested(1, "{% if event.data.big | date('%Y') %}{% endif %}"),
            "the value is not a time: expected RFC 3339 such as 2026-11-20T07:03:00Z, or seconds \
             since 1970",
        ),
        (doubled(2), WORK),
        (doubled(3), WORK),
        ("{{ event.data.big | replace('x', event.data.big) }}".to_owned(), LONG),
        ("{{ event.data.big | replace('x', 'xxxxxxxx') }}".to_owned(), LONG),
        ("{{ [event.data.big, event.data.big, event.data.big] | join }}".to_owned(), LONG),
        (
            "{{ [1, 2, 3] | join(event.data.big) | join }}".to_owned(),
            "`join` needs a list, but the value is a string",
        ),
        (format!("{{{{ [{}] }}}}", "event,".repeat(60)), LONG),
        ("{{ event.data.controls }}{{ event.data.controls | tojson }}".to_owned(), LONG),
        ("{{ event.data.long }}{{ event.data.alike }}".to_owned(), WORK),
    ] {
        let (result, spent) = measured(&template, &values(data.clone()));
        assert_eq!(result, Err(reason.to_owned()), "{}", &template[..template.len().min(90)]);
        assert!(spent <= FUEL_MAX);
    }
}

#[test]
fn a_template_is_bounded_before_it_is_parsed() {
    for (template, reason) in [
        ("x".repeat(16_385), "the template must have at most 16384 bytes, but has 16385"),
        ("{{ 1 }}".repeat(201), "the template has more than 200 tags"),
        (
            format!("{{{{ {}1 }}}}", "-".repeat(10_000)),
            "the template has more than 200 words and symbols in one tag",
        ),
        (
            format!("{{{{ {}1 }}}}", "not ".repeat(4_000)),
            "the template has more than 200 words and symbols in one tag",
        ),
        (
            format!("{{{{ {}1 }}}}", "not ".repeat(190)),
            "operators, filters and members are nested more than 64 levels deep",
        ),
        (
            format!("{{{{ {}1 }}}}", "-".repeat(190)),
            "operators, filters and members are nested more than 64 levels deep",
        ),
        (
            format!("{{{{ {}1{} }}}}", "(".repeat(17), ")".repeat(17)),
            "the template has more than 16 nested brackets",
        ),
        (
            format!("{{{{ {}1{} }}}}", "[".repeat(5_000), "]".repeat(5_000)),
            "the template has more than 16 nested brackets",
        ),
        (
            format!("{{{{ 1{} }}}}", " ~ 1".repeat(70)),
            "operators, filters and members are nested more than 64 levels deep",
        ),
        (
            format!("{{{{ event{} }}}}", ".a".repeat(90)),
            "operators, filters and members are nested more than 64 levels deep",
        ),
        (
            format!("{{{{ event{} }}}}", " | lower".repeat(90)),
            "operators, filters and members are nested more than 64 levels deep",
        ),
        (
            format!("{{{{ 1{} }}}}", " if 1 else 1".repeat(55)),
            "the template has more than 200 words and symbols in one tag",
        ),
        (nested(9, ""), "the template has more than 8 nested `if` and `for`"),
        (
            format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(300)),
            "the template has more than 200 tags",
        ),
        (
            format!("{{% for {}a{} in events %}}{{% endfor %}}", "(".repeat(500), ")".repeat(500)),
            "the template has more than 16 nested brackets",
        ),
    ] {
        let reason = (Err(reason.to_owned()), 0);
        assert_eq!(
            measured(&template, &values(json!(1))),
            reason,
            "{}",
            &template[..template.len().min(90)]
        );
    }
}

#[test]
fn the_deepest_templates_need_little_stack() {
    let work = || {
        let values = values(json!(1));
        for template in [
            format!("{{{{ {}1{} }}}}", "(".repeat(16), ")".repeat(16)),
            format!("{{{{ {}1 }}}}", "not ".repeat(190)),
            format!("{{{{ {}1 }}}}", "-".repeat(190)),
            format!("{{{{ {}1 }}}}", "not ".repeat(60)),
            format!("{{{{ 1{} }}}}", " ~ 1".repeat(62)),
            format!("{{{{ 1{} }}}}", " if 1 else 1".repeat(39)),
            format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(190)),
            format!("{}1{}", "{% if 1 %}".repeat(8), "{% endif %}".repeat(8)),
            format!("{{{{ {}1{} }}}}", "[".repeat(16), "]".repeat(16)),
        ] {
            let _ = measured(&template, &values);
        }
    };
    let thread = std::thread::Builder::new().stack_size(1024 * 1024).spawn(work).unwrap();
    thread.join().unwrap();
}

#[test]
fn a_deep_event_is_an_error_and_a_legal_one_is_not() {
    let deep = |depth: usize| (0..depth).fold(json!(1), |value, _| json!([value]));
    let compiled = BodyTemplate::compile(&json!("{{ event.data }}"), "body").unwrap();
    assert!(compiled.render(&values(deep(126))).is_ok());
    let error = compiled.render(&values(deep(200))).unwrap_err();
    assert_eq!(error.reason, "lists and objects in a value are nested more than 128 levels deep");
    let (compared, _) = measured("{{ event.data == event.data }}", &values(deep(200)));
    assert_eq!(compared, Err(error.reason));
}

#[test]
fn a_large_event_that_is_passed_on_is_within_the_limits() {
    let numbers = json!({ "list": vec![1; 100_000], "text": "x".repeat(800_000) });
    for template in [
        "{{ event }}",
        "{{ event.data.text }}",
        "{{ event.data.text | tojson }}",
        "{{ event.data.list }}",
    ] {
        let compiled = BodyTemplate::compile(&json!({ "a": template }), "body").unwrap();
        let values = values(numbers.clone());
        let rendered = compiled.render(&values).unwrap();
        assert!(
            rendered.len() < RENDERED_MAX_BYTES,
            "{template}: {} of {FUEL_MAX}",
            values.budget().spent()
        );
    }
}

#[test]
fn all_templates_of_a_request_share_its_fuel() {
    let values = values(json!({ "list": vec![1; 1_000] }));
    let long = TextTemplate::compile(&nested(1, ""), "query.q").unwrap();
    let rendered = (0..400).map(|_| long.render_query_value(&values));
    let rendered = rendered.take_while(Result::is_ok).count();
    assert!((10..100).contains(&rendered), "{rendered}");
    let short = TextTemplate::compile("{{ 1 }}", "headers.h").unwrap();
    assert_eq!(short.render_header(&values).unwrap_err().reason, WORK);
    let body = BodyTemplate::compile(&json!("{{ 1 }}"), "body").unwrap();
    assert_eq!(body.render(&values).unwrap_err().reason, WORK);
    let path = PathTemplate::compile("https://a.example/{{ 1 }}", "url").unwrap();
    assert_eq!(path.render(&values).unwrap_err().reason, WORK);
}

#[test]
fn the_fuel_of_a_body_is_shared_by_its_strings() {
    let data = json!({ "list": vec![1; 1_000] });
    let template: Vec<String> = (0..400).map(|_| nested(1, "")).collect();
    let compiled = BodyTemplate::compile(&json!(template), "body").unwrap();
    assert_eq!(compiled.render(&values(data)).unwrap_err().reason, WORK);
}

#[test]
fn a_body_template_is_bounded() {
    let deep = (0..70).fold(json!(1), |value, _| json!([value]));
    for (template, reason) in [
        (deep, "lists and objects are nested more than 64 levels deep"),
        (json!(vec!["{{ 1 }}"; 501]), "the body has more than 500 strings with expressions"),
        (json!("x".repeat(262_144)), "the body has more than 262144 bytes"),
        (json!(vec![0; 200_000]), "the body has more than 262144 bytes"),
    ] {
        let errors = BodyTemplate::compile(&template, "body").unwrap_err();
        assert_eq!(errors.last().unwrap().reason, reason);
    }
}
