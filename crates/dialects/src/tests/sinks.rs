use super::support::{self, native_subscription, native_topic};

/// Subscriptions to topics of `n`, each a topic, a name and the rest of its spec, and what is found
/// in them.
fn found(topics: &[(&str, &str)], subscriptions: &[(&str, &str, &str)]) -> Vec<String> {
    let topic = |(name, spec): &(&str, &str)| native_topic(&format!("n/{name}"), spec);
    let subscription = |(topic, name, rest): &(&str, &str, &str)| {
        let spec = format!("destination: {{url: 'http://h/'}}{rest}");
        native_subscription(&format!("n/{topic}/{name}"), &spec)
    };
    let text: String =
        topics.iter().map(topic).chain(subscriptions.iter().map(subscription)).collect();
    support::found(&text)
}

fn to(topic: &str) -> String {
    format!(", deadLetter: {{sink: {{topic: n/{topic}}}}}")
}

#[test]
fn a_topic_that_dead_letters_never_reach_is_a_warning_at_its_position() {
    let at = |line: usize| format!("f:{line}:68: warning: spec.deadLetter.sink.topic: ");
    let own = "n/a is the subscription's own topic: dead letters go to the default container";
    let unheard = "n/lost has no subscription: dead letters go to the default container";
    let round = |topic: &str, own: &str| {
        format!(
            "the sinks of n/{topic} lead back to n/{own}: dead letters in a loop go to the default \
             container"
        )
    };
    let (a, b, c) = (to("a"), to("b"), to("c"));
    for (topics, subscriptions, expected) in [
        (
            &[][..],
            vec![("a", "x", b.as_str()), ("b", "y", ""), ("b", "z", &c), ("c", "z", "")],
            vec![],
        ),
        (&[], vec![("a", "x", &a)], vec![format!("{}{own}", at(4))]),
        (&[("lost", "")], vec![("a", "x", &to("lost"))], vec![format!("{}{unheard}", at(9))]),
        (
            &[],
            vec![("a", "x", &b), ("b", "y", &c), ("c", "z", &a)],
            vec![
                format!("{}{}", at(4), round("b", "a")),
                format!("{}{}", at(9), round("c", "b")),
                format!("{}{}", at(14), round("a", "c")),
            ],
        ),
        // A round that a subscription's dead letters only come to is reported where it is made.
        (
            &[],
            vec![("a", "x", &b), ("b", "y", &c), ("c", "z", &b)],
            vec![format!("{}{}", at(9), round("c", "b")), format!("{}{}", at(14), round("b", "c"))],
        ),
    ] {
        assert_eq!(found(topics, &subscriptions), expected, "{subscriptions:?}");
    }
}

#[test]
fn a_topic_that_reads_no_dead_letter_of_the_format_is_a_warning() {
    for (input, message, unread) in [
        ("auto", "format: namespace", None),
        ("custom", "format: namespace", None),
        ("opaque", "format: eventgrid", None),
        ("cloudevents", "", Some(("namespace", "cloudevents"))),
        ("cloudevents", "format: cloudevents", None),
        ("cloudevents", "format: knative", None),
        ("cloudevents", "format: namespace, layout: flat", Some(("namespace", "cloudevents"))),
        ("cloudevents", "format: eventgrid", Some(("eventgrid", "cloudevents"))),
        ("cloudevents", "format: custom", Some(("custom", "cloudevents"))),
        ("s3", "format: namespace", Some(("namespace", "cloudevents"))),
        ("eventgrid", "format: namespace", Some(("namespace", "eventgrid"))),
        ("eventgrid", "format: namespace, layout: flat", None),
        ("eventgrid", "format: knative", Some(("knative", "eventgrid"))),
        ("eventgrid", "format: eventgrid", None),
        ("eventgrid", "format: custom", None),
    ] {
        let spec = format!(", deadLetter: {{sink: {{topic: n/b}}, {message}}}");
        let topic = [("b", &*format!("input: {input}"))];
        let expected = unread.map(|(format, right)| {
            format!(
                "f:9:68: warning: spec.deadLetter.sink.topic: n/b has input {input} and cannot read the format \
                 {format}: dead letters go to the default container; format: {right}"
            )
        });
        let expected: Vec<String> = expected.into_iter().collect();
        assert_eq!(
            found(&topic, &[("a", "x", &spec), ("b", "y", "")]),
            expected,
            "{input}, {message}"
        );
    }
}

#[test]
fn a_topic_that_is_in_none_of_the_files_is_an_error_once_at_its_place() {
    let of_topic = "delivery: {deadLetter: {sink: {topic: n/lots}}}";
    let error = "error: spec.delivery.deadLetter.sink.topic: the topic n/lots is not in any of the files; did you mean n/lost?";
    let subscriptions = [
        ("a", "x", ""),
        ("a", "y", ""),
        ("a", "z", ", deadLetter: {sink: 's3://bucket'}"),
        ("lost", "x", ""),
    ];
    assert_eq!(found(&[("a", of_topic)], &subscriptions), [format!("f:4:46: {error}")]);
}

#[test]
fn an_unused_dead_letter_option_is_a_warning_at_its_position() {
    let layout = "warning: spec.deadLetter.layout: no effect: the format knative has only one \
                  layout; format: namespace";
    let data = "warning: spec.deadLetter.errorData: no effect: the format namespace has no \
                knativeerrordata; format: knative";
    for (message, expected) in [
        ("format: namespace, layout: flat", None),
        ("layout: flat", None),
        ("format: knative, layout: nested, errorData: base64", None),
        ("format: eventgrid, errorData: text", None),
        ("format: knative, layout: ^flat", Some(layout.to_owned())),
        ("errorData: ^base64", Some(data.to_owned())),
    ] {
        let column = "spec: {destination: {url: 'http://h/'}, deadLetter: {".len()
            + message.find('^').unwrap_or_default()
            + 1;
        let spec = format!(", deadLetter: {{{}}}", message.replace('^', ""));
        let expected: Vec<String> =
            expected.into_iter().map(|problem| format!("f:4:{column}: {problem}")).collect();
        assert_eq!(found(&[], &[("a", "x", &spec), ("b", "y", "")]), expected, "{message}");
    }
}

#[test]
fn topic_settings_apply_to_the_subscriptions_that_inherit_them() {
    let says = [("a", "delivery: {deadLetter: {layout: flat}}")];
    let (knative, plain) = (("a", "x", ", deadLetter: {format: knative}"), ("a", "y", ""));
    let dropped = ("a", "z", ", deadLetter: none");
    let unused = "f:4:40: warning: spec.delivery.deadLetter.layout: no effect: the format knative \
                  has only one layout; format: namespace";
    let of_layout = |subscriptions: &[(&str, &str, &str)]| {
        let mut found = found(&says, subscriptions);
        found.retain(|finding| finding.contains("layout"));
        found
    };
    assert_eq!(of_layout(&[knative, plain]), Vec::<String>::new());
    assert_eq!(of_layout(&[plain, knative]), Vec::<String>::new());
    assert_eq!(of_layout(&[knative, ("a", "w", knative.2), dropped]), [unused]);
    assert_eq!(of_layout(&[dropped]), Vec::<String>::new());
}
