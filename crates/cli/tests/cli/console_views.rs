//! Links of dead letters in the console: from a list to one, to its neighbours, to others of the
//! same event, and to a replay of picked ones.

use crate::console_server::{ConsoleServer, hidden, status_and_text};
use crate::sample_letters::{LETTERS, Sample, TestContainer, sample};

/// The samples, and a dead letter of the first event for another subscription.
fn samples() -> TestContainer {
    let container = TestContainer::folder();
    container.write(&LETTERS.map(Sample::blob));
    let (key, blob) = Sample { subscription: "mail", ..sample(8, (19, 23), "no\rmore\r") }.blob();
    container.write(&[(key, blob.replace("order-8", "order-1"))]);
    container
}

/// The value of an attribute of the first tag with this text in it.
fn link(page: &str, rel: &str) -> Option<String> {
    let tag = page.split("<a ").find(|tag| tag.contains(&format!("rel=\"{rel}\"")))?;
    Some(tag.split("href=\"").nth(1)?.split('"').next()?.replace("&amp;", "&"))
}

#[tokio::test]
async fn the_page_of_a_dead_letter_leads_on_within_the_filters_and_back_to_its_page_of_the_list() {
    let container = samples();
    let server = ConsoleServer::start(&container, &[]);
    let list = server.page("/letters?search=overloaded&limit=2").await;
    let first = format!("/letters/{}?search=overloaded&amp;limit=2", LETTERS[3].id());
    assert!(list.contains(&format!("href=\"{first}\"")), "{list}");
    let mut path = first.replace("&amp;", "&");
    for (number, letter) in [(1, LETTERS[3]), (2, LETTERS[1]), (3, LETTERS[0])] {
        assert!(path.contains(&letter.id()), "{number}: {path}");
        let page = server.page(&path).await;
        assert!(page.contains(&format!("<span>{number} of 3</span>")), "{page}");
        let back = if number < 3 { "" } else { "page=2&amp;" };
        assert!(
            page.contains(&format!("href=\"/letters?search=overloaded&amp;{back}limit=2\"")),
            "{number}: {page}"
        );
        assert_eq!(link(&page, "prev").is_some(), number > 1);
        match link(&page, "next") {
            Some(next) => path = next,
            None => assert_eq!(number, 3),
        }
    }
    let (status, said) =
        server.status_and_text(&format!("/letters/{}?colour=red", LETTERS[0].id())).await;
    assert!(status == 400 && said.contains("this filter does not exist"), "{said}");
    let other = server.page(&format!("/letters/{}?status=404", LETTERS[0].id())).await;
    assert!(!other.contains(" of 1</span>"), "it is not in that list");
}

#[tokio::test]
async fn the_page_of_a_dead_letter_tells_its_attempts_its_request_and_what_else_became_of_its_event()
 {
    let container = samples();
    let (key, blob) = sample(9, (20, 12), "").blob();
    let headers =
        r#""customDeliveryProperties":{"X-Tenant":"it's acme","Authorization":"Bearer s3cret"},"#;
    container.write(&[(key, blob.replacen('{', &format!("{{{headers}"), 1))]);
    let server = ConsoleServer::start(&container, &[]);
    server.page("/").await;
    let page = server.page(&format!("/letters/{}", LETTERS[0].id())).await;
    for shown in [
        "The connection was refused, reset or closed.",
        "The destination is overloaded or temporarily unavailable.",
        "<b>503</b> Service Unavailable",
        "Response:</a> <span class=\"mono\">overloaded</span>",
        "1 dead letter besides this one",
        "href=\"/letters/00000000-0000-0000-0000-000000000008\"",
        "href=\"/letters?id=order-1&amp;state=all\"",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let page = server.page(&format!("/letters/{}", sample(8, (0, 0), "").id())).await;
    assert!(!page.contains("U+000D") && page.contains("no\nmore"), "{page}");
    let page = server.page(&format!("/letters/{}", sample(9, (0, 0), "").id())).await;
    let command = page.split("id=\"curl\"").nth(1).and_then(|rest| rest.split("</pre>").next());
    let command = command.expect("a command");
    assert!(command.contains(" https://billing.example.com/events"), "{command}");
    assert!(command.contains(r"--header 'x-tenant: it'\''s acme'"), "{command}");
    assert!(!command.contains("s3cret") && page.contains("Omitted: Authorization."), "{page}");
}

#[tokio::test]
async fn the_first_page_names_each_cause_with_what_a_replay_would_do_and_leads_to_its_page() {
    let container = samples();
    let server = ConsoleServer::start(&container, &[]);
    let home = server.page("/").await;
    for part in ["causes with 6 open dead letters", "503 overloaded", "at 50/s, less than a second"]
    {
        assert!(home.contains(part), "{part}: {home}");
    }
    let cause = home.split("href=\"/causes/").nth(1).and_then(|rest| rest.split('"').next());
    let cause = cause.expect("a link to a cause");
    let page = server.page(&format!("/causes/{cause}")).await;
    let command = format!("--cause {cause}");
    for part in [
        "Last response of the endpoint",
        "Affected subscriptions",
        command.as_str(),
        "dead letters from ",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("href=\"/subscriptions/"), "a container has no subscriptions: {page}");
    let short = server.page(&format!("/causes/{}", &cause[..8])).await;
    assert!(short.contains(cause), "the beginning of an id is enough");
    for unknown in ["00000000", "x", "..%2f"] {
        assert_eq!(server.status_and_text(&format!("/causes/{unknown}")).await.0, 404, "{unknown}");
    }
}

#[tokio::test]
async fn the_dead_letters_of_a_cause_are_dismissed_together_with_a_note() {
    let container = samples();
    let server = ConsoleServer::start(&container, &[]);
    let home = server.page("/").await;
    let cause = home.split("href=\"/causes/").nth(1).and_then(|rest| rest.split('"').next());
    let path = format!("/causes/{}", cause.expect("a link to a cause"));
    let token = server.token().await;
    let page = server.page(&path).await;
    let shown = hidden(&page, "fingerprint");
    let others = server.fingerprint("/replay?id=order-1&id=order-3").await;
    let dismiss = |note: &'static str, shown: &str| {
        let form = [("token", token.as_str()), ("note", note), ("fingerprint", shown)];
        server.post(&format!("{path}/dismiss"), &form).send()
    };
    assert_eq!(dismiss("", &shown).await.expect("an answer").status(), 400);
    let (status, said) = status_and_text(dismiss("known", &others).await.expect("an answer")).await;
    assert!(status == 409 && said.contains("Nothing was dismissed"), "{said}");
    assert_eq!(dismiss("known", &shown).await.expect("an answer").status(), 303);
    let page = server.page(&path).await;
    assert!(page.contains("There are no open dead letters of this cause"), "{page}");
    assert!(!server.page("/").await.contains(&path), "it is no longer broken");
    assert_eq!(dismiss("again", &shown).await.expect("an answer").status(), 404, "none is open");
}

#[tokio::test]
async fn a_dismissal_warns_of_dead_letters_that_an_unfinished_replay_sends() {
    let container = samples();
    let (letter, key) = (LETTERS[0].id(), LETTERS[0].key());
    let header =
        r#"{"v":1,"job":"running","at":"2026-11-21T07:03:00Z","to":"subscription","letters":1}"#;
    let plan = format!("{header}\n{{\"letter\":\"{letter}\",\"key\":\"{key}\"}}\n");
    container.write(&[("_replays/running/plan.ndjson".to_owned(), plan)]);
    let server = ConsoleServer::start(&container, &[]);
    let warning = "An unfinished replay includes 1 dead letter";
    let page = server.page(&format!("/letters/{letter}")).await;
    assert!(page.contains(warning), "{page}");
    let cause = page.split("href=\"/causes/").nth(1).and_then(|rest| rest.split('"').next());
    let page = server.page(&format!("/causes/{}", cause.expect("a link to its cause"))).await;
    assert!(page.contains(warning), "{page}");
    let other = server.page(&format!("/letters/{}", LETTERS[2].id())).await;
    assert!(!other.contains("unfinished replay"), "{other}");
}

#[tokio::test]
async fn a_replay_has_a_price_only_on_aws_and_its_page_names_what_is_not_known() {
    let container = samples();
    let local = ConsoleServer::start(&container, &[]);
    let page = local.page("/replay?status=503").await;
    for part in [
        "the local queues of <code>lastmile dev</code> on 127.0.0.1",
        "Unknown destination: 4 dead letters.",
        "costs nothing: the queue is on this machine",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains('`') && !page.contains(" on AWS"), "{page}");
    let to_url = local.page("/replay?status=503&to=url&to_url=https://a.example.com/").await;
    assert!(!to_url.contains("Unknown destination"), "no destination gets it: {to_url}");
    let home = local.page("/").await;
    assert!(!home.contains("less than a cent"), "{home}");
    let queue = "https://sqs.eu-west-1.amazonaws.com/123456789012/live-RetryQueue";
    let paid = ConsoleServer::start(&container, &["--queue-url", queue]);
    assert!(paid.page("/replay?status=503").await.contains("less than a cent</b> on AWS"));
    assert!(paid.page("/").await.contains("less than a second, less than a cent"));
}

#[tokio::test]
async fn placeholders_are_explained_on_pages_whose_titles_have_one() {
    let container = TestContainer::folder();
    container.write(&[sample(1, (20, 9), "overloaded").blob()]);
    let explanation = "A placeholder in a title";
    let without = ConsoleServer::start(&container, &[]);
    assert!(!without.page("/").await.contains(explanation));
    container.write(&[17, 18].map(|number| {
        let (key, blob) = sample(number, (20, 9), "order N is locked").blob();
        (key, blob.replace("order N", &format!("order {number}")))
    }));
    let server = ConsoleServer::start(&container, &[]);
    let home = server.page("/").await;
    assert!(home.contains("503 order &lt;number&gt; is locked"), "{home}");
    assert_eq!(home.matches(explanation).count(), 1, "{home}");
    let causes = home.split("href=\"/causes/").skip(1);
    let cause = causes.filter(|link| link.contains("&lt;number&gt; is locked")).last();
    let cause = cause.and_then(|link| link.split('"').next()).expect("a link to the cause");
    let page = server.page(&format!("/causes/{cause}")).await;
    assert!(page.contains(explanation), "{page}");
}

#[tokio::test]
async fn what_an_event_contains_is_hidden_if_that_is_asked_for() {
    let container = samples();
    let server = ConsoleServer::start(&container, &["--hide-events"]);
    server.page("/").await;
    let letter = format!("/letters/{}", LETTERS[0].id());
    let page = server.page(&letter).await;
    assert!(page.contains("hidden, because the console was started with --hide-events"), "{page}");
    assert!(!page.contains("id=\"curl\"") && !page.contains("/raw"), "{page}");
    assert_eq!(server.status_and_text(&format!("{letter}/raw")).await.0, 403);
}

#[tokio::test]
async fn picked_dead_letters_are_replayed_and_nothing_picked_is_not_everything() {
    let container = samples();
    let server = ConsoleServer::start(&container, &[]);
    let ids = format!("id={}&id={}", LETTERS[0].id(), LETTERS[4].id());
    let page = server.page(&format!("/replay?picked=yes&{ids}")).await;
    assert!(page.contains("2 dead letters to send"), "{page}");
    let page = server.page(&format!("/replay?picked=yes&topic=orders&status=5xx&{ids}")).await;
    assert!(page.contains("1 dead letter to send"), "{page}");
    let (status, page) = server.status_and_text("/replay?picked=yes&topic=orders").await;
    assert!(status == 400 && page.contains("Nothing is selected"), "{page}");
    let many: Vec<String> = LETTERS.iter().map(|letter| format!("id={}", letter.id())).collect();
    let page = server.page(&format!("/replay?picked=yes&id=x&{}", many.join("&"))).await;
    assert!(page.contains("any of 6") && page.contains("5 dead letters to send"), "{page}");
}

#[tokio::test]
async fn the_list_says_when_it_was_read_offers_periods_and_suggests_what_there_is() {
    let container = samples();
    let server = ConsoleServer::start(&container, &[]);
    let page = server.page("/letters?topic=orders").await;
    let (_, read) = page.split_once("As of <time").expect("a time");
    assert!(read.split_once(" UTC").is_some(), "{page}");
    assert!(page.contains("data-period-ms=\"30000\""), "{page}");
    assert!(!page.contains("http-equiv"), "nothing moves under a reader without scripts");
    for period in ["topic=orders&amp;since=PT1H", "topic=orders&amp;since=P1D", "topic=orders"] {
        assert!(page.contains(&format!("href=\"/letters?{period}\"")), "{period}: {page}");
    }
    let week = server.page("/letters?since=P7D&topic=orders").await;
    let current = week.split("aria-current=\"true\"").next().unwrap_or_default();
    assert!(current.ends_with("since=P7D\" "), "{current}");
    for value in ["shop", "shop/orders", "shop/orders/mail", "order.paid", "TimeToLiveExceeded"] {
        assert!(page.contains(&format!("<option value=\"{value}\">")), "{value}: {page}");
    }
    assert!(page.contains("class=\"button primary\" href=\"/replay?topic=orders\""), "{page}");
    let all = server.page("/letters").await;
    assert!(all.contains("class=\"button\" href=\"/replay\""), "quiet while nothing is filtered");
}
