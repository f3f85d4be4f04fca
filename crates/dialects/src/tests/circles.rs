use super::support::found;

/// The warnings about channels whose Subscriptions go from the first to the second of each pair.
fn warnings(pairs: &[(&str, &str)]) -> Vec<String> {
    let channel = |name: &str| {
        format!(
            "apiVersion: messaging.knative.dev/v1\nkind: InMemoryChannel\nmetadata: {{name: {name}}}\n---\n"
        )
    };
    let reference = |name: &str| {
        format!("{{apiVersion: messaging.knative.dev/v1, kind: InMemoryChannel, name: {name}}}")
    };
    let subscription = |(from, to): &(&str, &str)| {
        format!(
            "apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {{name: {from}-{to}}}\n\
             spec: {{channel: {}, subscriber: {{ref: {}}}}}\n---\n",
            reference(from),
            reference(to)
        )
    };
    let mut names: Vec<&str> = pairs.iter().flat_map(|(from, to)| [*from, *to]).collect();
    names.sort_unstable();
    names.dedup();
    let text: String =
        names.into_iter().map(channel).chain(pairs.iter().map(subscription)).collect();
    found(&text)
}

#[test]
fn topics_that_lead_back_to_each_other_are_a_warning_that_names_the_circle() {
    let found = warnings(&[("b", "c"), ("c", "a"), ("a", "b"), ("c", "d")]);
    let [finding] = &found[..] else { panic!("{found:#?}") };
    assert!(
        finding.contains(
            "warning: metadata.name: events can circulate forever: default/a -> default/b -> \
             default/c -> default/a;"
        ),
        "{finding}"
    );
}

#[test]
fn each_circle_is_named() {
    let found = warnings(&[("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("x", "y"), ("y", "x")]);
    assert_eq!(found.len(), 3, "{found:#?}");
    for circle in [
        "default/a -> default/b -> default/a;",
        "default/b -> default/c -> default/b;",
        "default/x -> default/y -> default/x;",
    ] {
        assert_eq!(
            found.iter().filter(|finding| finding.contains(circle)).count(),
            1,
            "{circle} {found:#?}"
        );
    }
}

#[test]
fn topics_that_meet_again_are_no_circle() {
    assert_eq!(warnings(&[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]), Vec::<String>::new());
}

#[test]
fn a_chain_of_three_thousand_topics_is_no_circle() {
    let names: Vec<String> = (0..3_000).map(|n| format!("c{n}")).collect();
    let chain: Vec<(&str, &str)> = names.windows(2).map(|pair| (&*pair[0], &*pair[1])).collect();
    assert_eq!(warnings(&chain), Vec::<String>::new());
}
