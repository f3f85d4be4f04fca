//! Dead letters that a person dismisses on the page. `transcripts/dead_letters.md` has the
//! commands.

use crate::console_server::ConsoleServer;
use crate::sample_letters::{LETTERS, Sample, TestContainer};

fn container() -> TestContainer {
    let container = TestContainer::folder();
    container.write(&LETTERS.map(Sample::blob));
    container
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_dismisses_with_its_token_only_and_shows_the_note() {
    let container = container();
    let server = ConsoleServer::start(&container, &[]);
    let path = format!("/letters/{}", LETTERS[0].id());
    let dismiss = format!("{path}/dismiss");
    let forged = server.post(&dismiss, &[("token", "x"), ("note", "n")]).send().await;
    assert_eq!(forged.expect("it answers").status(), 403);
    let token = server.token().await;
    let empty = server.post(&dismiss, &[("token", &token), ("note", "")]).send().await;
    assert_eq!(empty.expect("it answers").status(), 400);
    let form = [("token", token.as_str()), ("note", "known <b>bug</b>")];
    let done = server.post(&dismiss, &form).send().await.expect("it answers");
    assert_eq!(done.status(), 303);
    let page = server.page(&path).await;
    assert!(page.contains("known &lt;b&gt;bug&lt;/b&gt;"), "{page}");
    assert!(page.contains("Undo the dismissal"), "{page}");
    assert!(!server.page("/letters").await.contains(&path), "it is not listed");
    let undo = format!("{path}/undismiss");
    let undone = server.post(&undo, &[("token", &token)]).send().await.expect("it answers");
    assert_eq!(undone.status(), 303);
    assert!(server.page("/letters").await.contains(&path), "it is listed again");
}
