//! A destination that refuses every event is listed as failing, though no delivery to it is
//! deferred.

use std::time::Duration;

use crate::console_live_server::subscription;
use crate::destinations_emptied::{EVENT, subscriber, succeeded};
use crate::programs::{Running, lastmile, word};

/// So many attempts in a row have to fail.
const REFUSED: usize = 10;
/// Longer than a function takes to write what it found out: ten seconds, in steps.
const STEPS: usize = 100;
const STEP: Duration = Duration::from_millis(100);

#[test]
fn a_destination_that_refuses_ten_events_in_a_row_is_listed_as_failing() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let folder = folder.path();
    let (mut stock, url) = subscriber(folder, "400");
    std::fs::write(folder.join("subscriptions.yaml"), subscription("stock", &url, "", ""))
        .expect("a file");
    let arguments = ["dev", "--port", "0", "--aws-port", "0", "--no-console"];
    let mut dev = Running::start(lastmile(folder, &arguments));
    let ready = dev.line_with("ready:");
    let aws = word(ready.rsplit(" on ").next().expect("an address"), "http://");
    let aws = aws.split('/').nth(2).expect("a host").to_owned();
    let queue = format!("http://{aws}/000000000000/events");
    for number in 0..REFUSED {
        let event = EVENT.replace("order-1", &format!("order-{number}"));
        std::fs::write(folder.join("event.json"), event).expect("a file");
        succeeded(
            folder,
            &["publish", "--queue-url", &queue, "--topic", "shop/orders", "event.json"],
        );
    }
    stock.wait_for_lines("-> 400", REFUSED);
    let list = || succeeded(folder, &["destinations", "list"]);
    let mut listed = list();
    for _ in 0..STEPS {
        if listed.contains("failing") {
            break;
        }
        std::thread::sleep(STEP);
        listed = list();
    }
    assert!(listed.contains("failing") && listed.contains("shop/orders/stock"), "{listed}");
    let shown = succeeded(folder, &["destinations", "show", "shop/orders/stock"]);
    assert!(shown.contains("400 Bad Request"), "{shown}");
    assert!(shown.contains("deliveries are attempted immediately"), "{shown}");
}
