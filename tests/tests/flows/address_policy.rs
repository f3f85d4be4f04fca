//! Blocked addresses: they get no packet, and the dead letter names the reason.

use crate::CLOUD_EVENT;
use crate::app_fixture::AppFixture;

/// Spellings of the local host, of a metadata service and of the Runtime API; `PORT` is that of a
/// server that would accept a connection.
const FORBIDDEN: [&str; 8] = [
    "https://169.254.169.254/latest/meta-data",
    "https://[::ffff:127.0.0.1]:PORT/",
    "https://2130706433:PORT/",
    "https://0x7f.1:PORT/",
    "https://localhost:PORT/",
    "http://localhost:PORT/",
    "https://127.0.0.1:9001/",
    "http://127.0.0.1:9001/2018-06-01/runtime/invocation/next",
];

#[tokio::test]
async fn a_blocked_destination_gets_no_packet_and_its_delivery_is_dead_lettered() {
    let subscription = |(number, url): (usize, &&str)| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: shop, topic: orders, name: s{number}}}\nspec: {{destination: {{url: \"{url}\"}}}}\n"
        )
    };
    let subscriptions: Vec<String> = FORBIDDEN.iter().enumerate().map(subscription).collect();
    let app = AppFixture::without_private_addresses(&subscriptions).await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    let letters = app.dead_letters(FORBIDDEN.len()).await;
    for (key, letter) in &letters {
        let properties = &letter["deadletterProperties"];
        assert_eq!(
            properties["deadletterreasoncode"], "UndeliverableDueToBlockedAddress",
            "{key}: {letter}"
        );
        assert_eq!(
            (&properties["deliveryattempts"], &properties["deliveryresult"]),
            (&1.into(), &"Blocked".into())
        );
    }
    assert_eq!(app.received(0).await.len(), 0);
}
