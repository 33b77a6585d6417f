"""A tool for an agent."""

from quarry_client import Quarry

# In the form that most frameworks take: a name, a description and a JSON Schema for the model.
LOOK_UP = {
    "name": "look_up",
    "description": "Finds passages in the handbook of the shop that answer a question.",
    "input_schema": {
        "type": "object",
        "properties": {"question": {"type": "string", "description": "A question in plain words."}},
        "required": ["question"],
        "additionalProperties": False,
    },
}


def look_up(quarry: Quarry, question: str) -> str:
    """Runs the tool and returns text for the model."""
    run = quarry.automations.run("look-up", payload={"question": question})
    if run["status"] != "completed":
        raise RuntimeError(f"The run {run['id']} failed: {run.get('error')}")
    passages = [f"{each['title']}: {each['content']}" for each in run["result"]]
    return "\n\n".join(passages) or "Nothing was found."
