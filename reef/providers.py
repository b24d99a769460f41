"""Vendors whose models speak none of the three dialects, and the variables that a call to each of them needs.

They are reached through litellm, in a process of its own that gets the variables of its one vendor and no other's.
"""

from __future__ import annotations

from dataclasses import dataclass

_AWS_SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK")
_AWS = (
    "AWS_REGION",
    "AWS_REGION_NAME",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_BEDROCK_RUNTIME_ENDPOINT",
    "AWS_CA_BUNDLE",
)


@dataclass(frozen=True)
class Provider:
    """One vendor as litellm knows it."""

    name: str
    """What stands before the slash in `--model`."""
    secrets: tuple[str, ...]
    """Variables that hold its keys, the usual one first."""
    more: tuple[str, ...] = ()
    """Variables that say where and as whom."""
    key_needed: bool = True
    """Whether one of the secrets must be set; otherwise a login on this machine may do."""


PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider("bedrock", _AWS_SECRETS, _AWS, key_needed=False),
        Provider("sagemaker", _AWS_SECRETS, _AWS, key_needed=False),
        Provider(
            "vertex_ai",
            ("VERTEXAI_CREDENTIALS",),
            ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "VERTEXAI_PROJECT", "VERTEXAI_LOCATION"),
            key_needed=False,
        ),
        Provider("gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
        Provider(
            "azure",
            ("AZURE_API_KEY", "AZURE_AD_TOKEN", "AZURE_CLIENT_SECRET"),
            ("AZURE_API_BASE", "AZURE_API_VERSION", "AZURE_CLIENT_ID", "AZURE_TENANT_ID"),
        ),
        Provider("azure_ai", ("AZURE_AI_API_KEY",), ("AZURE_AI_API_BASE",)),
        Provider("cohere_chat", ("COHERE_API_KEY", "CO_API_KEY"), ("COHERE_API_BASE",)),
        Provider(
            "watsonx",
            ("WATSONX_APIKEY", "WATSONX_API_KEY", "WATSONX_TOKEN", "WATSONX_ZENAPIKEY"),
            ("WATSONX_URL", "WATSONX_PROJECT_ID", "WATSONX_DEPLOYMENT_SPACE_ID"),
        ),
        Provider("databricks", ("DATABRICKS_API_KEY",), ("DATABRICKS_API_BASE",)),
        Provider("replicate", ("REPLICATE_API_KEY", "REPLICATE_API_TOKEN")),
        Provider("cloudflare", ("CLOUDFLARE_API_KEY",), ("CLOUDFLARE_ACCOUNT_ID",)),
    )
}


def provider_of(model: str) -> Provider | None:
    """The vendor of `bedrock/anthropic.claude-x`; None for a model that needs no litellm."""
    name, slash, rest = model.partition("/")
    return PROVIDERS.get(name) if slash and rest else None
