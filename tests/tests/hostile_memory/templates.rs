//! The memory use of hostile templates, measured in a child process that only renders.
//!
//! The core counts fuel and lengths. This test shows that they bound the memory of a process: each template asks for a text of
//! eight megabytes or more.

use std::path::Path;
use std::process::Output;

use delivery::template::{Attempt, BodyTemplate, Origin, Values};
use serde_json::{Value as Json, json};

use crate::{client, memory_bytes, reset_peak};

/// The event of this test, some copies of its values, and an output of 1 MiB.
const GROWTH_MAX_BYTES: u64 = 8 * 1_024 * 1_024;
const VALUE_BYTES: usize = 500_000;

#[tokio::test]
async fn hostile_templates_are_refused_in_little_memory() {
    if !Path::new("/proc/self/clear_refs").exists() {
        println!("not measured: /proc on this machine cannot reset the peak memory of a process");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let client = client("templates::child_process_of_the_template_test", folder.path().to_owned());
    let Output { status, stdout, stderr } =
        tokio::task::spawn_blocking(client).await.expect("no panic");
    println!("{}", String::from_utf8_lossy(&stdout));
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
}

#[test]
#[ignore = "the other test runs it in a process of its own"]
fn child_process_of_the_template_test() {
    let event = json!({ "id": "e", "data": {
        "big": "x".repeat(VALUE_BYTES), "list": vec![0; 1_000], "controls": "\u{1}".repeat(VALUE_BYTES / 6),
    } });
    let origin = Origin { namespace: "n", topic: "t", name: "s" };
    let attempt = Attempt { number: 1, delivery_id: "d", time_ms: 0 };
    reset_peak();
    let before_bytes = memory_bytes("VmRSS");
    for (name, template) in hostile_templates() {
        let values = Values::of_event(event.clone(), origin, attempt);
        let compiled = BodyTemplate::compile(&template, "body").expect("a template");
        let refused = compiled.render(&values).expect_err(name);
        let growth = memory_bytes("VmHWM").saturating_sub(before_bytes);
        println!("{:>6} KiB by now: {name}: {}", growth / 1_024, refused.reason);
        assert!(growth < GROWTH_MAX_BYTES, "{name}: {growth} bytes");
    }
}

fn hostile_templates() -> [(&'static str, Json); 6] {
    let doubled = |times: u32| {
        (0..times).fold("event.data.big".to_owned(), |text, _| format!("({text} ~ {text})"))
    };
    let loops = format!(
        "{}{{{{ event.data.big }}}}{}",
        "{% for a in event.data.list %}".repeat(8),
        "{% endfor %}".repeat(8)
    );
    [
        ("a doubling string", json!({ "a": format!("{{{{ {} }}}}", doubled(4)) })),
        ("deep loops", json!({ "a": loops })),
        (
            "a value in a value",
            json!({ "a": "{{ event.data.big | replace('x', event.data.big) }}" }),
        ),
        (
            "the event again and again",
            json!({ "a": format!("{{{{ [{}] }}}}", "event,".repeat(60)) }),
        ),
        ("a value in 400 members", json!(vec!["{{ event.data.big }}"; 400])),
        (
            "escapes of escapes",
            json!({ "a": "{{ [event.data.controls, event.data.controls] | tojson | tojson }}" }),
        ),
    ]
}
