//! Subscription files at the command line: check, explain, apply, rollback, and their exit codes.

use std::path::Path;
use std::process::{Command, Output};

use super::deployments::{deploy, object, uri};
use super::programs::findings;

/// Two subscriptions, one of them named.
const TWO: &str = "
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: billing}
spec:
  destination: {url: 'https://billing.example.com/events?code=secret'}
  retry: {maxAttempts: 3, schedule: {kind: waits, waits: [PT1M, PT10M]}}
  deadLetter: {sink: 's3://letters/shop', delay: PT5M}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: mail}
spec: {destination: {url: 'https://mail.example.com/'}, deadLetter: none}
";
const BILLING: &str = "shop/orders/billing";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("the file can be written");
    }
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).current_dir(folder).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

#[test]
fn the_exit_code_of_check_says_whether_the_files_can_be_deployed() {
    let invalid = TWO.replace("maxAttempts: 3", "maxAttempts: 0");
    let folder = folder(&[("two.yaml", TWO), ("wrong.yaml", &invalid)]);
    let checked = run(folder.path(), &["check", "two.yaml"]);
    assert_eq!(checked.status.code(), Some(0));
    assert!(
        text(&checked.stdout).starts_with("two.yaml:13:69: warning: spec.deadLetter: "),
        "{}",
        text(&checked.stdout)
    );

    let checked = run(folder.path(), &["check", "wrong.yaml"]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(text(&checked.stdout).contains("wrong.yaml:7:24: error: spec.retry.maxAttempts: "));

    let missing = run(folder.path(), &["check", "two.yaml", "nowhere.yaml"]);
    assert_eq!((missing.status.code(), missing.stdout.len()), (Some(2), 0));
    assert!(text(&missing.stderr).contains("nowhere.yaml cannot be read"));
    assert_eq!(run(folder.path(), &["check"]).status.code(), Some(2));
}

#[test]
fn findings_of_every_kind_are_in_the_order_of_files_and_lines() {
    let documents = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\n\
                     apiVersion: lastmile.dev/v1\nkind: Subscription\n\
                     metadata: {namespace: n, topic: t, name: NAME}\n\
                     spec: {destination: {url: 'http://127.0.0.1:1/'}}\n---\n\
                     apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: n, name: NAME}\nspec: {inputs: auto}\n";
    let [z, a] = ["z", "a"].map(|name| documents.replace("NAME", name));
    let folder = folder(&[("z.yaml", &z), ("empty.yaml", ""), ("a.yaml", &a)]);
    let files = ["z.yaml", "empty.yaml", "a.yaml"];
    let places = |lines: &str| -> Vec<String> {
        let place = |line: &str| Some(line.splitn(5, ':').take(4).collect::<Vec<_>>().join(":"));
        lines.lines().filter(|line| line.contains(".yaml:")).filter_map(place).collect()
    };
    let checked = run(folder.path(), &[&["check"], &files[..]].concat());
    let findings = text(&checked.stdout);
    let findings = findings.split("\n\n").next().unwrap_or_default();
    let expected = [
        "z.yaml:1:1: note",
        "z.yaml:8:27: warning",
        "z.yaml:13:8: error",
        "empty.yaml:1:1: warning",
        "a.yaml:8:27: warning",
        "a.yaml:13:8: error",
    ];
    assert_eq!(places(findings), expected, "{findings}");
    let to = format!("file://{}/deployed/", folder.path().display());
    let applied = run(folder.path(), &[&["apply", "--to", &to, "-f"], &files[..]].concat());
    let of_documents = expected.iter().filter(|place| !place.starts_with("empty"));
    assert!(places(&text(&applied.stderr)).iter().eq(of_documents), "{}", text(&applied.stderr));
    let converted = run(folder.path(), &[&["convert"], &files[..]].concat());
    let of_reading = expected.iter().filter(|place| !place.contains(":8:27:"));
    assert!(places(&text(&converted.stderr)).iter().eq(of_reading), "{}", text(&converted.stderr));
}

#[test]
fn check_as_json_has_every_part_of_a_finding_in_order() {
    let folder = folder(&[("wrong.yaml", &TWO.replace("maxAttempts: 3", "maxAttempt: 3"))]);
    let checked = run(folder.path(), &["check", "wrong.yaml", "--output", "json"]);
    assert_eq!(checked.status.code(), Some(1));
    let first = &json(&checked)["findings"][0];
    assert_eq!(
        (&first["severity"], &first["line"], &first["column"]),
        (&"error".into(), &7.into(), &11.into())
    );
    assert_eq!(first["field"], "spec.retry.maxAttempt");
    assert!(first["help"].as_str().is_some_and(|help| help.contains("maxAttempts")), "{first}");
    let (written, mut from) = (text(&checked.stdout), 0);
    for member in ["findings", "severity", "file", "line", "column", "field", "message", "help"] {
        from += written[from..]
            .find(&format!("\"{member}\":"))
            .unwrap_or_else(|| panic!("{member} in {written}"));
    }
}

#[test]
fn explain_as_json_has_attempts_end_and_on_demand_the_origin_of_each_value() {
    let folder = folder(&[("two.yaml", TWO)]);
    let of_billing = ["explain", "-f", "two.yaml", "--subscription", BILLING];
    for (output, origin) in [("json", "two.yaml:7:24"), ("table", "default of the native profile")]
    {
        let with = |more: &[&str]| {
            let all = [&of_billing[..], &["--output", output], more].concat();
            text(&run(folder.path(), &all).stdout)
        };
        assert!(with(&["--origins"]).contains(origin) && !with(&[]).contains(origin), "{origin}");
    }
    let explained =
        run(folder.path(), &[&of_billing[..], &["--output", "json", "--origins"]].concat());
    assert_eq!(explained.status.code(), Some(0), "{}", text(&explained.stderr));
    let written = text(&explained.stdout);
    let (before, attempts) = written.split_once("\"attempts\":").expect("there are attempts");
    assert!(before.starts_with(r#"{"subscription":"shop/orders/billing","dialect":"native","policy":{"maxAttempts":{"value":3,"from":"two.yaml:7:24"},"#), "{before}");
    assert!(
        before.contains(r#""timeToLive":{"value":"P1D","from":"default of the native profile"}"#),
        "{before}"
    );
    assert_eq!(
        attempts.trim_end(),
        concat!(
            r#"[{"attempt":1,"wait_ms":0,"at_ms":0},{"attempt":2,"wait_ms":60000,"at_ms":60000},"#,
            r#"{"attempt":3,"wait_ms":600000,"at_ms":660000}],"#,
            r#""end":{"reason":"MaxDeliveryAttemptsExceeded","at_ms":660000,"deadletter_after_ms":300000,"#,
            r#""container":"letters/shop","format":"namespace"},"#,
            r#""status":{"deadLetterSinkUri":"s3://letters/shop","container":"letters/shop","format":"namespace"}}"#
        )
    );
}

#[test]
fn explain_follows_the_outcome_and_shows_all_subscriptions_when_none_is_named() {
    let folder = folder(&[("two.yaml", TWO)]);
    let all = json(&run(
        folder.path(),
        &["explain", "-f", "two.yaml", "--output", "json", "--outcome", "400"],
    ));
    let reasons: Vec<&serde_json::Value> =
        all.as_array().into_iter().flatten().map(|of| &of["end"]["reason"]).collect();
    assert_eq!(reasons, ["UndeliverableDueToHttpBadRequest"; 2]);
    assert_eq!(all[1]["end"]["container"], serde_json::Value::Null);
    let busy = [
        "explain",
        "-f",
        "two.yaml",
        "--subscription",
        BILLING,
        "--output",
        "json",
        "--outcome",
        "429",
    ];
    let busy = json(&run(folder.path(), &[&busy[..], &["--retry-after", "120"]].concat()));
    assert_eq!(busy["attempts"][1]["wait_ms"], 120_000);
    let done = json(&run(
        folder.path(),
        &["explain", "-f", "two.yaml", "--output", "json", "--outcome", "202"],
    ));
    assert_eq!(
        (&done[0]["end"]["reason"], &done[0]["end"]["at_ms"]),
        (&"Delivered".into(), &0.into())
    );
    assert_eq!(
        run(folder.path(), &["explain", "-f", "two.yaml", "--outcome", "bad"]).status.code(),
        Some(2)
    );
}

#[test]
fn explain_takes_files_and_folders_as_check_does_and_a_name_beside_them() {
    let folder = folder(&[("one.yaml", &TWO.replace("orders", "mails")), ("two.yaml", TWO)]);
    for name in ["all", "shop/orders"] {
        std::fs::create_dir_all(folder.path().join(name)).expect("a folder");
        let file = folder.path().join(name).join("two.yaml");
        std::fs::write(file, TWO).expect("a file");
    }
    deploy(folder.path(), &TWO.replace("orders", "mails"));
    let to = uri(folder.path());
    let two = "shop/orders/billing shop/orders/mail";
    let mails = "shop/mails/billing shop/mails/mail";
    let both = format!("{mails} {two}");
    for (arguments, expected) in [
        (&["two.yaml"][..], two),
        (&["one.yaml", "two.yaml"], &both),
        (&["all"], two),
        (&["./shop/orders"], two),
        (&["shop/orders"], two),
        (&["one.yaml", "-f", "two.yaml"], &both),
        (&["all", "shop/orders/billing"], BILLING),
        (&[BILLING, "all"], BILLING),
        (&[BILLING, "-f", "two.yaml"], BILLING),
        (&["-f", "two.yaml", BILLING], BILLING),
        (&["-f", "one.yaml", "two.yaml", "shop/mails"], mails),
        (&["one.yaml", "two.yaml", "shop/mails"], mails),
        (&["all", "--subscription", BILLING], BILLING),
        (&["--to", &to], mails),
        (&["shop/mails", "--to", &to], mails),
        (&["shop/mails/mail", "--to", &to], "shop/mails/mail"),
        (&["--subscription", "shop/mails/mail", "--to", &to], "shop/mails/mail"),
    ] {
        let output = run(folder.path(), &[&["explain", "--output", "json"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        let found = json(&output);
        let all = found.as_array().cloned().unwrap_or_else(|| vec![found]);
        let names: Vec<&str> = all.iter().filter_map(|of| of["subscription"].as_str()).collect();
        assert_eq!(names.join(" "), expected, "{arguments:?}");
    }
    // The folder has this name too, and a name of the deployment is meant.
    let named = run(folder.path(), &["explain", "shop/orders", "--to", &to]);
    assert!(text(&named.stderr).contains("there is no topic shop/orders in "), "{named:?}");
}

#[test]
fn explain_says_what_is_wrong_with_its_arguments() {
    let folder = folder(&[("two.yaml", TWO), ("blank.yaml", "# later\n")]);
    let to = uri(folder.path());
    for (arguments, expected) in [
        (&[][..], "<FILE|NS/TOPIC[/NAME]>"),
        (&["nowhere.yaml"], "nowhere.yaml cannot be read"),
        (&["shop/nowhere.yaml"], "shop/nowhere.yaml cannot be read"),
        (
            &["orders"],
            "orders is neither a file nor a name: namespace/topic or namespace/topic/name is",
        ),
        (&["shop/orders"], "shop/orders is the name of a topic: --to or --stack is required"),
        (&["two.yaml", BILLING, "shop/orders/mail"], "only one topic or subscription can be named"),
        (&["two.yaml", BILLING, "--subscription", BILLING], "only one topic or subscription"),
        (
            &["two.yaml", "--to", &to],
            "--to has subscriptions of a deployment, and two.yaml is a file",
        ),
        (&["-f", "orders/nowhere"], "orders/nowhere cannot be read"),
        (&["two.yaml", "shop/none"], "there is no topic shop/none; there are\n  shop/orders\n"),
        (
            &["two.yaml", "shop/orders/none"],
            "there is no subscription shop/orders/none; there are\n",
        ),
    ] {
        let output = run(folder.path(), &[&["explain"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(expected), "{arguments:?}: {}", text(&output.stderr));
    }
    let blank = run(folder.path(), &["explain", "blank.yaml"]);
    assert_eq!(blank.status.code(), Some(1));
    let expected = "blank.yaml:1:1: error: there is nothing but comments here; ";
    assert!(text(&blank.stderr).starts_with(expected), "{}", text(&blank.stderr));
}

#[test]
fn explain_draws_a_time_axis() {
    let folder = folder(&[("two.yaml", TWO)]);
    let table =
        text(&run(folder.path(), &["explain", "-f", "two.yaml", "--subscription", BILLING]).stdout);
    assert!(
        table.starts_with("shop/orders/billing (native) -> https://billing.example.com/events\n"),
        "{table}"
    );
    for part in [
        // Its endpoint answers 500.
        "no request for 30s; then one delivery probes it",
        "10m  +11m",
        "MaxDeliveryAttemptsExceeded",
        "dead letter: 5m later, to s3://letters/shop",
    ] {
        assert!(table.contains(part), "{part} in {table}");
    }
    assert!(!table.contains("secret"), "{table}");
}

#[test]
fn explain_says_which_limits_apply_and_when_probation_begins() {
    let limited = TWO
        .replace(
            "secret'}",
            "secret', maxConcurrency: 4, maxPerSecond: 20, slowAfter: PT5S, disable: {after: P5D}}",
        )
        .replace("mail.example.com/'", "mail.example.com/', probation: false");
    let folder = folder(&[("two.yaml", &limited)]);
    let explain = |rest: &[&str]| {
        run(folder.path(), &[&["explain", "-f", "two.yaml", "--outcome", "503"], rest].concat())
    };
    let shown = text(&explain(&[]).stdout);
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "4, of all functions together",
        "50, of each function",
        "maxPerSecond 20 ",
        "slowAfter PT5S ",
        "P5D",
        "probation: after 10 failed attempts in a row, of two events or more, no request for 10s; then one delivery probes \
         it, and each probe that fails doubles that, up to 5m",
        "probation: off",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    // It concerns the event, not the destination.
    let refused = run(folder.path(), &["explain", "-f", "two.yaml", "--outcome", "400"]);
    let refused = text(&refused.stdout);
    let begins_none = "probation: on, but nothing that this endpoint does begins one\n";
    assert!(refused.contains(begins_none), "{refused}");
    let explained = json(&explain(&["--output", "json"]));
    let terms =
        serde_json::json!({"after_failures": 10, "first_ms": 10_000, "longest_ms": 300_000});
    assert_eq!(explained[0]["probation"], terms);
    assert_eq!(explained[1]["probation"], serde_json::Value::Null);
}

#[test]
fn a_path_that_is_a_credential_is_in_no_explanation() {
    let hidden =
        TWO.replace("mail.example.com/'", "mail.example.com/services/t0ken', hidePath: true");
    let folder = folder(&[("hidden.yaml", &hidden)]);
    for output in ["table", "json"] {
        let explained = run(folder.path(), &["explain", "-f", "hidden.yaml", "--output", output]);
        let shown = text(&explained.stdout) + &text(&explained.stderr);
        assert!(explained.status.success() && !shown.contains("t0ken"), "{shown}");
    }
    let shown = text(&run(folder.path(), &["explain", "-f", "hidden.yaml"]).stdout);
    assert!(shown.contains("https://mail.example.com/[secret]"), "{shown}");
}

#[test]
fn explain_lists_all_subscriptions_if_the_named_one_does_not_exist() {
    let folder = folder(&[("two.yaml", TWO)]);
    let missing =
        run(folder.path(), &["explain", "-f", "two.yaml", "--subscription", "shop/orders/nobody"]);
    assert_eq!((missing.status.code(), missing.stdout.len()), (Some(2), 0));
    assert!(
        text(&missing.stderr).contains("  shop/orders/billing\n  shop/orders/mail\n"),
        "{}",
        text(&missing.stderr)
    );
}

#[test]
fn apply_shows_what_changes_field_by_field_after_asking() {
    let second =
        TWO.replace("maxAttempts: 3", "maxAttempts: 4").replace("name: mail", "name: post");
    let folder = folder(&[("two.yaml", TWO), ("second.yaml", &second)]);
    let to = uri(folder.path());
    let apply = |file: &str, more: &[&str]| {
        run(folder.path(), &[&["apply", "-f", file, "--to", &to, "--prune"], more].concat())
    };

    let unasked = apply("two.yaml", &[]);
    assert_eq!(unasked.status.code(), Some(2), "{}", text(&unasked.stderr));
    assert!(!folder.path().join("subscriptions").exists());

    let applied = apply("two.yaml", &["--yes"]);
    assert_eq!(applied.status.code(), Some(0), "{}", text(&applied.stderr));
    let billing = "+ subscription shop/orders/billing\n    deadLetter.delay: PT5M\n    deadLetter.sink: s3://letters/shop\n    \
                   destination.url: https://billing.example.com/events\n    retry.maxAttempts: 3\n";
    assert!(text(&applied.stdout).contains(billing), "{}", text(&applied.stdout));
    assert!(!text(&applied.stdout).contains("code=secret"), "{}", text(&applied.stdout));
    assert!(text(&apply("two.yaml", &["--yes"]).stdout).contains("nothing to do"));

    let changed = text(&apply("second.yaml", &["--yes"]).stdout);
    for part in [
        "~ subscription shop/orders/billing\n    retry.maxAttempts: 3 -> 4\n",
        "- subscription shop/orders/mail\n    warning: removed",
        "+ subscription shop/orders/post",
    ] {
        assert!(changed.contains(part), "{part} in {changed}");
    }
}

#[test]
fn apply_joins_several_files_and_refuses_what_has_errors() {
    let (first, second) = TWO.split_once("---").expect("there are two documents");
    let as_json = r#"{"apiVersion": "lastmile.dev/v1", "kind": "Topic", "metadata": {"namespace": "shop", "name": "orders"}}"#;
    let folder = folder(&[
        ("a.yaml", first),
        ("b.yaml", second),
        ("c.json", as_json),
        ("wrong.yaml", "kind: Topic\n"),
    ]);
    let to = uri(folder.path());
    let joined = run(
        folder.path(),
        &["apply", "-f", "a.yaml", "-f", "b.yaml", "c.json", "--to", &to, "--yes"],
    );
    assert_eq!(joined.status.code(), Some(0), "{}", text(&joined.stderr));
    let checked = run(folder.path(), &["check", "--to", &to]);
    assert_eq!(checked.status.code(), Some(0));
    let counted = "subscriptions without an error: 2; errors: 0; warnings: 0\n";
    assert!(text(&checked.stderr).ends_with(counted), "{}", text(&checked.stderr));

    let topic = object(folder.path(), "shop/orders.json");
    let before = std::fs::read(&topic).expect("it is there");
    for files in [&["wrong.yaml"][..], &["a.yaml", "wrong.yaml"]] {
        let arguments = [&["apply", "--to", &to, "--yes", "--prune", "-f"], files].concat();
        assert_eq!(run(folder.path(), &arguments).status.code(), Some(1));
    }
    assert_eq!(std::fs::read(&topic).expect("it is there"), before);
    assert_eq!(run(folder.path(), &["apply", "-f", "a.yaml", "--yes"]).status.code(), Some(2));
}

#[test]
fn check_warns_of_valid_files_that_behave_unexpectedly() {
    let knative = "apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {name: s}\nspec:\n  \
         channel: {apiVersion: messaging.knative.dev/v1, kind: KafkaChannel, name: c}\n  \
         subscriber: {uri: 'https://a.example.com/'}\n  delivery: {retry: 40, backoffPolicy: exponential, backoffDelay: PT1S}\n";
    let folder = folder(&[("k.yaml", knative), ("empty.yaml", "# nothing\n"), ("two.yaml", TWO)]);
    let checked = text(&run(folder.path(), &["check", "k.yaml"]).stdout);
    assert!(checked.contains("allows 41 attempts, but 20 fit into the 14 days"), "{checked}");
    assert!(checked.contains("k.yaml:7:") && !checked.contains("format"), "{checked}");
    let checked = text(&run(folder.path(), &["check", "empty.yaml"]).stdout);
    assert!(
        checked.contains("empty.yaml:1:1: warning:") && checked.contains("no subscription"),
        "{checked}"
    );
    assert!(!text(&run(folder.path(), &["check", "two.yaml"]).stdout).contains("fit into"));
}

#[test]
fn check_warns_of_subscriptions_with_one_address_that_state_different_limits() {
    let document = |name: &str, destination: &str| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: shop, topic: orders, name: {name}}}\n\
             spec: {{destination: {{url: {destination}}}}}\n"
        )
    };
    let warnings = |destinations: &[&str]| {
        let documents: Vec<String> =
            ["a", "b", "c"].iter().zip(destinations).map(|(name, to)| document(name, to)).collect();
        let folder = folder(&[("all.yaml", &documents.join("---\n"))]);
        let printed = text(&run(folder.path(), &["check", "all.yaml"]).stdout);
        let warnings = printed.lines().filter(|line| line.contains("have the same address"));
        warnings.map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    const FIVE: &str = "'https://one.example.com/', maxPerSecond: 5";
    const SIX: &str = "'https://one.example.com/', maxPerSecond: 6";
    for agreed in [
        [FIVE, FIVE],
        [FIVE, "'https://two.example.com/', maxPerSecond: 6"],
        // The path and the query are parts of the address.
        [FIVE, "'https://one.example.com/?tenant=b', maxPerSecond: 6"],
        // It states no rate, and the other one no concurrency.
        [FIVE, "'https://one.example.com/', maxConcurrency: 6"],
        [FIVE, "'https://one.example.com/'"],
        // No request is made.
        ["'topic:shop/refunds', maxPerSecond: 5", "'topic:shop/refunds', maxPerSecond: 6"],
    ] {
        assert_eq!(warnings(&agreed), [""; 0], "{agreed:?}");
    }
    let warning = |line: u32, column: u32, field: &str, subscriptions: &str, numbers: &str| {
        format!(
            "all.yaml:{line}:{column}: warning: {field}: {subscriptions} have the same address and share its {field}, \
             but state {numbers}: state one number"
        )
    };
    const A_B: &str = "shop/orders/a and shop/orders/b";
    const B_A: &str = "shop/orders/b and shop/orders/a";
    assert_eq!(
        warnings(&[FIVE, SIX, FIVE]),
        [
            warning(4, 69, "maxPerSecond", A_B, "5 and 6"),
            warning(9, 69, "maxPerSecond", B_A, "6 and 5"),
            warning(14, 69, "maxPerSecond", "shop/orders/c and shop/orders/b", "5 and 6"),
        ]
    );
    let [five, six] =
        ["5", "6"].map(|of| format!("'https://one.example.com/', maxConcurrency: {of}"));
    assert_eq!(
        warnings(&[&five, &six]),
        [
            warning(4, 71, "maxConcurrency", A_B, "5 and 6"),
            warning(9, 71, "maxConcurrency", B_A, "6 and 5"),
        ]
    );
}

#[test]
fn files_without_a_subscription_remove_everything_only_with_allow_empty_and_prune() {
    let folder = folder(&[("empty.yaml", "# nothing\n")]);
    deploy(folder.path(), TWO);
    let to = uri(folder.path());
    let apply = |more: &[&str]| {
        let arguments = [&["apply", "-f", "empty.yaml", "--to", &to, "--yes"], more].concat();
        run(folder.path(), &arguments)
    };
    let topic = object(folder.path(), "shop/orders.json");
    let before = std::fs::read(&topic).expect("it is there");
    for more in [&[][..], &["--prune"]] {
        let refused = apply(more);
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
        assert!(text(&refused.stderr).contains("--allow-empty"), "{}", text(&refused.stderr));
    }
    let kept = apply(&["--allow-empty"]);
    assert_eq!(kept.status.code(), Some(0), "{}", text(&kept.stderr));
    assert_eq!(std::fs::read(&topic).expect("it is there"), before);
    let allowed = apply(&["--allow-empty", "--prune"]);
    assert_eq!(allowed.status.code(), Some(0), "{}", text(&allowed.stderr));
    let printed = text(&allowed.stdout);
    assert!(printed.contains("- subscription shop/orders/billing"), "{printed}");
}

#[test]
fn apply_states_that_an_owner_loses_all_subscriptions_only_if_it_does() {
    let other = TWO.replace("topic: orders", "topic: others");
    let folder = folder(&[("empty.yaml", "# nothing\n"), ("two.yaml", TWO), ("o.yaml", &other)]);
    let to = uri(folder.path());
    let apply = |file: &str, more: &[&str]| {
        let arguments = [&["apply", "-f", file, "--to", &to, "--yes"], more].concat();
        let applied = run(folder.path(), &arguments);
        assert_eq!(applied.status.code(), Some(0), "{file} {more:?}: {}", text(&applied.stderr));
        text(&applied.stderr).contains("apply would remove all current subscriptions of ")
    };
    assert!(!apply("empty.yaml", &["--allow-empty"]), "there is none");
    assert!(!apply("two.yaml", &[]));
    assert!(!apply("empty.yaml", &["--allow-empty"]), "nothing is removed without --prune");
    assert!(!apply("empty.yaml", &["--allow-empty", "--prune", "--owner", "other"]));
    assert!(!apply("o.yaml", &["--owner", "other"]));
    assert!(apply("empty.yaml", &["--allow-empty", "--prune"]), "others keep theirs");
    assert!(apply("two.yaml", &["--prune", "--owner", "other"]), "other names come instead");
    assert!(!apply("empty.yaml", &["--allow-empty", "--prune"]), "there is none to remove");
}

#[test]
fn json_with_comments_is_applied_alone_and_joined_with_other_files() {
    let json = "{\n  // for the shop\n  \"apiVersion\": \"lastmile.dev/v1\", \"kind\": \"Subscription\",\n  \
                \"metadata\": {\"namespace\": \"shop\", \"topic\": \"orders\", \"name\": \"commented\"},\n  \
                \"spec\": {\n    \"destination\": {\"url\": \"https://a.example.com/\"},\n    // only created orders\n    \
                \"filter\": {\"exact\": {\"type\": \"order.created\"}}\n  }\n}\n";
    let event = r#"{"specversion": "1.0", "id": "1", "source": "/s", "type": "order.lost"}"#;
    let folder = folder(&[("one.json", json), ("two.yaml", TWO), ("event.json", event)]);
    let to = uri(folder.path());
    for files in [&["one.json"][..], &["one.json", "two.yaml"], &["two.yaml", "one.json"]] {
        let arguments = [&["apply", "--to", &to, "--yes", "--prune", "-f"], files].concat();
        let applied = run(folder.path(), &arguments);
        assert_eq!(applied.status.code(), Some(0), "{files:?}: {}", text(&applied.stderr));
        let explained = run(folder.path(), &["explain", "--to", &to, "--event", "event.json"]);
        let explained = text(&explained.stdout);
        assert!(explained.contains("no   shop/orders/commented"), "{explained}");
        assert!(explained.contains("type is \"order.created\""), "{explained}");
    }
}

#[test]
fn explain_rejects_an_invalid_retry_after() {
    let folder = folder(&[("two.yaml", TWO)]);
    let explained = run(folder.path(), &["explain", "-f", "two.yaml", "--retry-after", "soon"]);
    assert_eq!(explained.status.code(), Some(2));
    assert!(text(&explained.stderr).contains("--retry-after"));
}

#[test]
fn check_warns_of_a_destination_that_is_refused_unless_the_deployment_allows_it() {
    for (url, what) in [
        ("https://10.0.0.1/in?code=secret", "10.0.0.1, which is not a public address"),
        ("https://[::1]/", "::1, which is not a public address"),
        ("https://localhost/", "localhost (127.0.0.1), which is not a public address"),
        ("https://a.localhost./", "a.localhost. (127.0.0.1), which is not a public address"),
        ("http://127.0.0.1:9180/", "127.0.0.1 without TLS"),
        ("http://10.0.0.1/", "10.0.0.1 without TLS"),
        ("http://receiver.shop.svc/", "receiver.shop.svc without TLS"),
        ("https://8.8.8.8/", ""),
        ("https://a.example.com/", ""),
    ] {
        let text = format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: n, topic: t, name: s}}\n\
             spec: {{destination: {{url: '{url}'}}}}\n"
        );
        let folder = folder(&[("a.yaml", &text)]);
        let checked = run(folder.path(), &["check", "a.yaml"]);
        assert_eq!(checked.status.code(), Some(0), "{url}");
        let allowed =
            "that is refused unless ALLOW_PRIVATE_DESTINATIONS of the deployment names it";
        let expected = format!("a.yaml:4:27: warning: url: n/t/s sends to {what}; {allowed}\n");
        assert_eq!(
            findings(&self::text(&checked.stdout)),
            if what.is_empty() { "" } else { &expected },
            "{url}"
        );
    }
}

#[test]
fn a_public_address_without_tls_is_an_error_unless_it_is_allowed() {
    for host in ["a.example.com", "8.8.8.8"] {
        let text = format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: n, topic: t, name: s}}\n\
             spec: {{destination: {{url: 'http://{host}/'}}}}\n"
        );
        let folder = folder(&[("a.yaml", &text)]);
        let checked = run(folder.path(), &["check", "a.yaml"]);
        assert_eq!(
            (findings(&self::text(&checked.stdout)), checked.status.code()),
            (
                format!(
                    "a.yaml:4:27: error: url: n/t/s sends to {host} without TLS; that is refused unless \
                     ALLOW_PRIVATE_DESTINATIONS of the deployment names it; use https, or name the stack that \
                     allows it with --stack, or set ALLOW_PRIVATE_DESTINATIONS here to what the deployment has\n"
                ),
                Some(1)
            )
        );
        let allowed = Command::new(env!("CARGO_BIN_EXE_lastmile"))
            .current_dir(folder.path())
            .args(["check", "a.yaml"])
            .env("ALLOW_PRIVATE_DESTINATIONS", host)
            .output()
            .expect("the program starts");
        let found = findings(&self::text(&allowed.stdout));
        assert_eq!((found, allowed.status.code()), (String::new(), Some(0)));
    }
}

#[test]
fn check_warns_of_replies_and_destinations_that_are_refused_or_have_no_subscription() {
    let subscription = |reply: &str| {
        format!(
            "apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {{name: s}}\nspec:\n  \
             channel: {{apiVersion: messaging.knative.dev/v1, kind: KafkaChannel, name: c}}\n  \
             subscriber: {{uri: 'https://a.example.com/'}}\n  reply: {reply}\n---\n\
             apiVersion: messaging.knative.dev/v1\nkind: KafkaChannel\nmetadata: {{name: other}}\n"
        )
    };
    let channel = "{ref: {apiVersion: messaging.knative.dev/v1, kind: KafkaChannel, name: other}}";
    let (clear, heard) = (
        subscription("{uri: 'http://replies.shop.svc/?code=secret'}"),
        subscription("{uri: 'https://r/'}"),
    );
    let to_channel = format!("subscriber: {channel}");
    let onward = heard.replace("subscriber: {uri: 'https://a.example.com/'}", &to_channel);
    let onward = onward.replace("  reply: {uri: 'https://r/'}\n", "");
    let folder = folder(&[
        ("clear.yaml", &clear),
        ("lost.yaml", &subscription(channel)),
        ("heard.yaml", &heard),
        ("onward.yaml", &onward),
    ]);
    let of_replies = |file: &str| {
        let checked = run(folder.path(), &["check", file]);
        assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stdout));
        let lines: Vec<String> = findings(&text(&checked.stdout))
            .lines()
            .filter(|of| ["repl", " go on ", "attempts"].iter().any(|part| of.contains(part)))
            .map(str::to_owned)
            .collect();
        lines
    };
    assert_eq!(
        of_replies("clear.yaml"),
        [
            "clear.yaml:7:16: warning: reply: default/c/s sends replies to replies.shop.svc without TLS; that is refused unless \
          ALLOW_PRIVATE_DESTINATIONS of the deployment names it"
        ]
    );
    assert_eq!(
        of_replies("lost.yaml"),
        [
            "lost.yaml:7:16: warning: reply: replies to default/c/s go to default/other, which has no subscription without an error: nobody \
          receives them"
        ]
    );
    assert_eq!(of_replies("heard.yaml"), [""; 0]);
    assert_eq!(
        of_replies("onward.yaml"),
        [
            "onward.yaml:6:21: warning: url: events of default/c/s go on to default/other, which has no subscription without an error: nobody \
          receives them"
        ]
    );
}

#[test]
fn explain_shows_batches_with_the_origin_of_each_part() {
    let export = include_str!("../../../../examples/eventgrid.json");
    let batched = export.replacen(
        "\"deliveryAttributeMappings\"",
        "\"maxEventsPerBatch\": 100, \"deliveryAttributeMappings\"",
        1,
    );
    let folder = folder(&[("e.json", &batched)]);
    let arguments = ["explain", "-f", "e.json", "--output", "json", "--origins"];
    let explained = json(&run(folder.path(), &arguments));
    let policy = &explained["policy"];
    assert_eq!(
        (&policy["batch.maxEvents"]["value"], &policy["batch.onRefused"]["value"]),
        (&100.into(), &"split".into())
    );
    assert!(
        policy["batch.maxEvents"]["from"]
            .as_str()
            .is_some_and(|from| from.starts_with("e.json:10:30")),
        "{policy}"
    );
    assert_eq!(policy["batch.preferredKilobytes"]["from"], "default of the eventgrid profile");
    assert_eq!(
        (&policy["lateResponseWindow"]["value"], &policy["probation"]["value"]),
        (&"PT3M".into(), &true.into())
    );
}

#[test]
fn explain_names_every_kind_of_sink() {
    let status = |of: &str| format!("\"status\":{{{of},\"format\":\"namespace\"}}");
    for (sink, in_words, status, container) in [
        (
            "''",
            "the default container of the deployment",
            status(r#""deadLetterSinkUri":null,"container":null"#),
            "null",
        ),
        (
            "{sink: 's3://letters/shop'}",
            "s3://letters/shop",
            status(r#""deadLetterSinkUri":"s3://letters/shop","container":"letters/shop""#),
            r#""letters/shop""#,
        ),
        (
            "{sink: 'sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost'}",
            "sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost",
            status(
                r#""deadLetterSinkUri":"sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost","container":null"#,
            ),
            "null",
        ),
        (
            "{sink: 'https://u:secret@lost.example.com/in?code=secret'}",
            "https://lost.example.com/in",
            status(r#""deadLetterSinkUri":"https://lost.example.com/in","container":null"#),
            "null",
        ),
        (
            "{sink: {topic: shop/lost}}",
            "the subscriptions of topic shop/lost",
            status(r#""deadLetterSinkUri":null,"errorChannel":"shop/lost","container":null"#),
            "null",
        ),
    ] {
        let document = |topic: &str, dead_letter: &str| {
            format!(
                "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: {topic}, name: billing}}\n\
                 spec: {{destination: {{url: 'https://a.example.com/'}}{dead_letter}}}\n---\n"
            )
        };
        let dead_letter =
            if sink == "''" { String::new() } else { format!(", deadLetter: {sink}") };
        let folder =
            folder(&[("s.yaml", &(document("orders", &dead_letter) + &document("lost", "")))]);
        let explained = |output: &str| {
            let of_billing = ["explain", "-f", "s.yaml", "--subscription", BILLING];
            let arguments = [&of_billing[..], &["--outcome", "400", "--output", output]].concat();
            text(&run(folder.path(), &arguments).stdout)
        };
        let (json, table) = (explained("json"), explained("table"));
        assert!(json.trim_end().ends_with(&format!("{status}}}")), "{json}");
        assert!(
            json.contains(&format!(
                "\"container\":{container},\"format\":\"namespace\"}},\"status\""
            )),
            "{json}"
        );
        let line = format!("dead letter: at once, to {in_words}, format namespace");
        assert!(table.contains(&line), "{table}");
        assert!(!format!("{json}{table}").contains("secret"), "{table}");
    }
}

#[test]
fn a_sink_without_tls_is_an_error_unless_the_deployment_allows_it() {
    let text = "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {namespace: n, topic: t, name: s}\n\
                spec: {destination: {url: 'https://a.example.com/'}, deadLetter: {sink: 'http://lost.example.com/?code=secret'}}\n";
    let folder = folder(&[("a.yaml", text)]);
    let checked = run(folder.path(), &["check", "a.yaml"]);
    assert_eq!(
        (findings(&self::text(&checked.stdout)).as_str(), checked.status.code()),
        (
            "a.yaml:4:73: error: deadLetter.sink: n/t/s sends dead letters to lost.example.com without TLS; that is \
             refused unless ALLOW_PRIVATE_DESTINATIONS of the deployment names it; use https, or name the stack that allows \
             it with --stack, or set ALLOW_PRIVATE_DESTINATIONS here to what the deployment has\n",
            Some(1)
        )
    );
}

#[test]
fn a_token_server_without_tls_is_an_error_and_a_private_one_is_told() {
    for (url, level, says) in [
        (
            "http://login.example.com/",
            "error",
            "sends a client's secret to login.example.com without TLS; ",
        ),
        (
            "https://10.1.2.3/",
            "warning",
            "sends a client's secret to 10.1.2.3, which is not a public address; ",
        ),
    ] {
        let text = format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: n, topic: t, name: s}}\n\
             spec: {{destination: {{url: 'https://a.example.com/', auth: {{oauth2: {{tokenUrl: '{url}', clientId: a, \
             clientSecret: 'env:CLIENT'}}}}}}}}\n"
        );
        let folder = folder(&[("a.yaml", &text)]);
        let checked = self::text(&run(folder.path(), &["check", "a.yaml"]).stdout);
        let expected = format!("{level}: auth: n/t/s {says}");
        assert!(checked.contains(&expected), "{expected} is not in {checked}");
    }
}
