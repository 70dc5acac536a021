//! `provider-azure-openai`: where it asks, what a deployment costs, and how it proves who asks: a key, a token, or tokens of
//! the identity that the machine has.

use amplifier_core::contracts::{Mounted, Provider, ProviderCx};
use amplifier_protocol::llm_error::LlmErrorKind as Kind;
use amplifier_testing::TestCoordinator;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::asking::{ask, hi, provider, request};
use crate::fault::{Act, FaultServer, refuses};
use crate::kit::built_in;
use crate::stage::offer;
use crate::vendors::says;

#[tokio::test]
async fn azure_is_asked_at_its_place_with_its_key_or_a_token() {
    let server = FaultServer::start(vec![says("provider-azure-openai", "hello")]).await;
    let place = server.url().trim_end_matches("/v1").to_owned();
    let rows = [
        (json!({"azure_endpoint": place}), "/openai/v1/responses", "api-key: k-very-secret\r\n"),
        (
            json!({"azure_endpoint": place, "api_version": "preview", "entra_token": "a.b.c"}),
            "/openai/v1/responses?api-version=preview",
            "authorization: bearer a.b.c\r\n",
        ),
        (
            json!({"azure_endpoint": place, "api_version": "2025-04-01-preview"}),
            "/openai/responses?api-version=2025-04-01-preview",
            "api-key: k-very-secret\r\n",
        ),
    ];
    for (config, path, header) in rows {
        let (provider, _hub, _) = provider("provider-azure-openai", &server, config).await;
        let asked =
            request(json!({"messages": [{"role": "user", "content": "hi"}], "model": "my-deployment"}));
        assert_eq!(ask(&*provider, asked).await.0.unwrap()["content"][0]["text"], json!("hello"));
        let asked = server.asked().pop().unwrap();
        assert_eq!((asked.path.as_str(), &asked.body["model"]), (path, &json!("my-deployment")));
        assert!(asked.head.contains(header), "{}", asked.head);
        assert_eq!(asked.head.matches("api-key:").count() + asked.head.matches("authorization:").count(), 1);
    }
}

#[tokio::test]
async fn deployments_cost_what_their_models_cost_unless_they_are_paid_by_the_hour() {
    let server = FaultServer::start(vec![says("provider-azure-openai", "hello")]).await;
    for (kind, cost) in [("standard", "0.0000325"), ("PTU", "0")] {
        let config = json!({"default_deployment": "gpt-5.4", "deployment_type": kind});
        let (provider, _hub, _) = provider("provider-azure-openai", &server, config).await;
        assert_eq!(ask(&*provider, hi()).await.0.unwrap()["usage"]["cost_usd"], json!(cost));
        assert_eq!(provider.info().default_number("context_window"), Some(272_000));
    }
}

fn hello() -> Vec<Act> {
    says("provider-azure-openai", "hello")
}

fn token(token: &str) -> Vec<Act> {
    refuses(200, &[], json!({"access_token": token, "expires_in": "3600", "token_type": "Bearer"}))
}

/// The provider on a machine with these variables, and without a key.
async fn on_a_machine(
    server: &FaultServer,
    variables: Value,
    mut config: Value,
) -> (Arc<dyn Provider>, TestCoordinator) {
    let hub = TestCoordinator::new();
    let offered = offer(move |asked: Value| {
        let told = variables[asked["name"].as_str().unwrap()].clone();
        async move { Ok(told) }
    });
    hub.register_capability("environment.variable", offered);
    config["azure_endpoint"] = json!(server.url().trim_end_matches("/v1"));
    config["max_retries"] = json!(0);
    let (mounted, _) = hub.mount(&*built_in("provider-azure-openai").await, config).await.unwrap();
    assert_eq!(mounted, Mounted::Ready);
    (hub.providers().remove(0).1, hub)
}

#[tokio::test]
async fn the_token_of_the_machine_is_fetched_once_and_goes_with_every_request() {
    let (machine, server) =
        (FaultServer::start(vec![token("t-1")]).await, FaultServer::start(vec![hello()]).await);
    let variables = json!({"AZURE_POD_IDENTITY_AUTHORITY_HOST": machine.url().trim_end_matches("/v1")});
    let (provider, _hub) = on_a_machine(&server, variables, json!({"use_managed_identity": true})).await;
    for _ in 0..2 {
        provider.complete(hi(), &ProviderCx::default()).await.unwrap();
    }
    assert_eq!((machine.asked().len(), server.asked().len()), (1, 2));
    let asked = machine.asked().remove(0);
    assert!(asked.head.contains("metadata: true\r\n"), "{}", asked.head);
    assert_eq!(
        asked.path,
        "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3a%2f%2fcognitiveservices.azure.com%2f"
    );
    assert!(server.asked().iter().all(|asked| asked.head.contains("authorization: bearer t-1\r\n")));
}

#[tokio::test]
async fn a_token_that_is_not_taken_is_not_shown_again() {
    let machine = FaultServer::start(vec![token("t-1"), token("t-2")]).await;
    let refusal = refuses(401, &[], json!({"error": {"message": "the token has ended"}}));
    let server = FaultServer::start(vec![refusal, hello()]).await;
    let variables = json!({"AZURE_USE_MANAGED_IDENTITY": "true", "IDENTITY_HEADER": "proof",
        "IDENTITY_ENDPOINT": format!("{}/token", machine.url())});
    let (provider, _hub) =
        on_a_machine(&server, variables, json!({"managed_identity_client_id": "me"})).await;
    let error = provider.complete(hi(), &ProviderCx::default()).await.unwrap_err();
    assert_eq!(error.kind, Kind::Authentication);
    provider.complete(hi(), &ProviderCx::default()).await.unwrap();
    assert!(server.asked()[1].head.contains("authorization: bearer t-2\r\n"));
    let asked = machine.asked().remove(1);
    assert!(
        asked.path.ends_with("&client_id=me") && asked.path.contains("api-version=2019-08-01"),
        "{}",
        asked.path
    );
    assert!(asked.head.contains("x-identity-header: proof\r\n"), "{}", asked.head);
}

#[tokio::test]
async fn a_machine_without_an_identity_says_so_and_the_service_is_not_asked() {
    let refusal =
        refuses(400, &[], json!({"error": "invalid_request", "error_description": "Identity not found"}));
    let (machine, server) =
        (FaultServer::start(vec![refusal]).await, FaultServer::start(vec![hello()]).await);
    let variables = json!({"AZURE_POD_IDENTITY_AUTHORITY_HOST": machine.url().trim_end_matches("/v1")});
    let (provider, _hub) = on_a_machine(&server, variables, json!({"use_default_credential": true})).await;
    let error = provider.complete(hi(), &ProviderCx::default()).await.unwrap_err();
    assert_eq!((error.kind, server.asked().len()), (Kind::Authentication, 0));
    assert!(error.to_string().contains("Identity not found"), "{error}");
}
