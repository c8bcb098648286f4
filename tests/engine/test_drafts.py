"""Drafts over a real engine: written with every change, checked, planned, saved as templates."""

from __future__ import annotations

import copy
import stat
from pathlib import Path
from typing import Any

import pytest

from workbench.descriptors import drafts
from workbench.descriptors.loading import load_campaign, load_chain
from workbench.domain import codec
from workbench.domain.drafts import (
    ChangeDraft,
    DiscardDraft,
    DraftList,
    DraftShown,
    GetDraftRevision,
    GetPalette,
    ListDrafts,
    Palette,
    ReadDraft,
    SaveTemplate,
    StartDraft,
    TemplateSaved,
    campaign_of,
)
from workbench.domain.errors import DescriptorError, NameTaken, UsageError
from workbench.domain.messages import (
    PROTOCOL_VERSION,
    Done,
    Failed,
    Hello,
    PlanCampaign,
    Planned,
    Request,
)
from workbench.engine.core import Engine
from workbench.paths import Workspace

OPERATOR = Hello(PROTOCOL_VERSION, "test", "ann")
OBSERVER = Hello(PROTOCOL_VERSION, "test", "bob", role="observer")
REMOTE = Hello(PROTOCOL_VERSION, "test", "eve", details={"door": "ssh"})
CHAIN = {
    "name": "both",
    "series": ["tinyproxy", "haproxy"],
    "resource_parameters": [
        {"vnf": "tinyproxy", "name": "vcpu", "values": ["25%"]},
        {"vnf": "haproxy", "name": "vcpu", "values": ["25%", "50%"]},
    ],
}


@pytest.fixture
async def engine(tmp_path: Path) -> Any:
    engine = Engine(Workspace(tmp_path))
    await engine.start()
    yield engine
    await engine.close()


async def ask(engine: Engine, request: Request, who: Hello = OPERATOR) -> Any:
    """As it would come over the link: through JSON and back, both ways."""
    sent = codec.message_of(codec.dumps(codec.message_to_plain(request)))
    reply = await engine.handle(sent, who)  # type: ignore[arg-type]
    back = codec.message_of(codec.dumps(codec.message_to_plain(reply)))
    if isinstance(back, Failed):
        raise codec.error_of(back)
    return back  # type: ignore[return-value]


async def draft(engine: Engine, request: Request, who: Hello = OPERATOR) -> DraftShown:
    reply = await ask(engine, request, who)
    assert isinstance(reply, DraftShown)
    return reply


async def with_chain(engine: Engine) -> DraftShown:
    new = await draft(engine, StartDraft("mine"))
    document = {**(new.document or {}), "targets": [CHAIN]}
    return await draft(engine, ChangeDraft("mine", document, revision=new.revision))


async def test_a_new_draft_lacks_targets_alone(engine: Engine) -> None:
    new = await draft(engine, StartDraft())
    assert new.name == "untitled"
    assert [m.field for m in new.mistakes] == ["targets"]
    assert new.campaign is None
    assert (await draft(engine, StartDraft())).name == "untitled-2"


async def test_a_draft_is_planned_like_a_campaign(engine: Engine) -> None:
    changed = await with_chain(engine)
    assert not changed.mistakes
    assert changed.campaign is not None
    assert changed.campaign.name == "mine"
    assert [v.name for v in changed.campaign.targets[0].target.vnfs] == ["tinyproxy", "haproxy"]
    reply = await ask(engine, PlanCampaign(campaign_of("mine"), "sim"))
    assert isinstance(reply, Planned)
    assert len(reply.plan.configurations) == 2


@pytest.mark.parametrize(
    ("lab", "wide"), [("sim", True), ("sim:host_cores=64", False), ("recorded:demo-real", False)]
)
async def test_what_the_host_of_its_lab_cannot_give_is_known_at_once(
    engine: Engine, lab: str, wide: bool
) -> None:
    """Fifty cores, on a simulated host of four: its plan says it too, before a run is refused."""
    new = await draft(engine, StartDraft("mine", "demo"))
    document = {**(new.document or {}), "lab": lab}
    document["targets"][0]["resource_parameters"][0]["values"] = ["25%", "5000%"]
    changed = await draft(engine, ChangeDraft("mine", document, revision=new.revision))
    assert ("but the simulated host has 4" in changed.beyond_host) is wide
    if lab.startswith("sim"):
        reply = await ask(engine, PlanCampaign(campaign_of("mine"), lab))
        assert ("simulated host has 4" in " ".join(reply.plan.warnings)) is wide
        reply = await ask(engine, PlanCampaign(campaign_of("mine"), "sim:host_cores=64", fit=True))
        assert not reply.plan.warnings


@pytest.mark.parametrize(("limit", "above"), [("1000", False), ("2000", True)])
async def test_an_sla_above_the_ceiling_is_warned_of(
    engine: Engine, limit: str, above: bool
) -> None:
    new = await draft(engine, StartDraft("mine", "demo"))
    sla = f"p95<={limit}ms @ rate=400/s, filesize=10kB"
    document = {**(new.document or {}), "sla": sla}
    changed = await draft(engine, ChangeDraft("mine", document, revision=new.revision))
    assert not changed.mistakes
    reply = await ask(engine, PlanCampaign(campaign_of("mine"), "sim"))
    assert ("above the ceiling (kpi_max) of 1000 ms" in " ".join(reply.plan.warnings)) is above


async def test_every_change_is_on_the_disk(engine: Engine) -> None:
    changed = await with_chain(engine)
    again = Engine(Workspace(engine.workspace.root))  # what a new engine would find
    path = engine.workspace.drafts / "mine.yaml"
    assert path.read_text() == changed.text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "its writer's alone, whatever the umask"
    assert again.workspace.drafts == engine.workspace.drafts
    assert (await draft(engine, ReadDraft("mine"))) == changed


async def test_a_draft_that_cannot_be_read_is_no_absent_one(engine: Engine) -> None:
    await with_chain(engine)
    path = engine.workspace.drafts / "round.yaml"
    path.symlink_to(path)
    for request in (ReadDraft("round"), DiscardDraft("round"), PlanCampaign(campaign_of("round"))):
        with pytest.raises(UsageError, match=r"the draft round cannot be read: .*symbolic"):
            await ask(engine, request)
    listed = {one.name: one for one in (await ask(engine, ListDrafts())).drafts}
    assert listed["round"].summary.startswith("the draft round cannot be read")
    assert (listed["round"].mistakes, listed["mine"].mistakes) == (1, 0)


async def test_mistakes_say_their_fields(engine: Engine) -> None:
    changed = await with_chain(engine)
    document = copy.deepcopy(dict(changed.document or {}))
    document["targets"][0]["resource_parameters"][1]["values"] = ["25%", "lots"]
    document["kpi_max"] = "3 parsecs"
    wrong = await draft(engine, ChangeDraft("mine", document))
    assert {m.field for m in wrong.mistakes} == {
        "targets[0].resource_parameters[1].values[1]",
        "kpi_max",
    }
    assert all(m.file == "mine.yaml" and m.line > 1 for m in wrong.mistakes)
    assert wrong.campaign is None
    assert wrong.document == document
    with pytest.raises(DescriptorError, match="lots"):
        await ask(engine, PlanCampaign(campaign_of("mine")))


async def test_text_that_is_no_yaml_is_kept_and_explained(engine: Engine) -> None:
    before = await with_chain(engine)
    wrong = await draft(engine, ChangeDraft("mine", text="targets: [\n"))
    assert wrong.document is None
    assert wrong.text == "targets: [\n"
    assert "not YAML" in wrong.mistakes[0].message
    back = await draft(engine, ChangeDraft("mine", text=before.text, revision=wrong.revision))
    assert back == before


async def test_a_draft_of_a_template_keeps_its_comments(engine: Engine) -> None:
    new = await draft(engine, StartDraft(template="demo"))
    assert new.name == "demo"
    assert new.text.startswith("# Two functions")
    assert not new.mistakes
    copied = await draft(engine, StartDraft(template="draft:demo"))
    assert (copied.name, copied.text) == ("demo-2", new.text)


async def test_what_somebody_else_changed_is_not_overwritten(engine: Engine) -> None:
    first = await draft(engine, StartDraft("mine"))
    await with_other_summary(engine, first)
    with pytest.raises(UsageError, match="somebody else changed"):
        await ask(engine, ChangeDraft("mine", text="kind: campaign\n", revision=first.revision))
    assert "theirs" in (await draft(engine, ReadDraft("mine"))).text


async def test_whether_it_was_changed_is_known_without_a_check_of_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await draft(engine, StartDraft("mine"))
    await with_other_summary(engine, first)
    now = await draft(engine, ReadDraft("mine"))
    monkeypatch.delattr(drafts, "checked")
    there = await ask(engine, GetDraftRevision("mine"))
    assert (there.name, there.revision) == ("mine", now.revision)
    assert there.revision != first.revision
    with pytest.raises(UsageError, match="no draft is called"):
        await ask(engine, GetDraftRevision("other"))


async def with_other_summary(engine: Engine, shown: DraftShown) -> None:
    document = {**(shown.document or {}), "summary": "theirs"}
    await draft(engine, ChangeDraft(shown.name, document, revision=shown.revision))


async def test_a_discarded_draft_comes_back(engine: Engine) -> None:
    before = await with_chain(engine)
    assert isinstance(await ask(engine, DiscardDraft("mine")), Done)
    with pytest.raises(UsageError, match="no draft is called 'mine'"):
        await ask(engine, ReadDraft("mine"))
    with pytest.raises(UsageError, match="discarded"):
        await ask(engine, ChangeDraft("mine", text="", revision=before.revision))
    assert await draft(engine, ChangeDraft("mine", text=before.text)) == before


async def test_drafts_are_listed_latest_first(engine: Engine) -> None:
    await with_chain(engine)
    await draft(engine, StartDraft("broken"))
    reply = await ask(engine, ListDrafts())
    assert isinstance(reply, DraftList)
    known = {d.name: d for d in reply.drafts}
    assert known["mine"].targets == ("both",)
    assert (known["mine"].mistakes, known["broken"].mistakes) == (0, 1)
    assert [d.changed_at for d in reply.drafts] == sorted(
        (d.changed_at for d in reply.drafts), reverse=True
    )


async def test_saved_as_a_campaign_and_as_a_chain(engine: Engine) -> None:
    await with_chain(engine)
    saved = await ask(engine, SaveTemplate("mine", "night"))
    assert isinstance(saved, TemplateSaved)
    found = load_campaign("night", workspace=engine.workspace).campaign
    assert found.targets[0].target.name == "both"
    await ask(engine, SaveTemplate("mine", "both", "chain"))
    chain = load_chain("both", workspace=engine.workspace)
    assert chain.node == found.targets[0].target.graph
    palette = await ask(engine, GetPalette())
    assert isinstance(palette, Palette)
    own = palette.chain("both")
    assert own is not None
    assert own.origin == "workspace"


async def test_a_chain_keeps_the_ends_that_it_was_measured_between(engine: Engine) -> None:
    await draft(engine, StartDraft("packets", "udp-loss"))
    await ask(engine, SaveTemplate("packets", "forwarding", "chain"))
    chain = load_chain("forwarding", workspace=engine.workspace)
    assert (chain.source, chain.sink) == ("packet-source", "packet-sink")


async def test_a_template_is_replaced_only_where_told(engine: Engine) -> None:
    await with_chain(engine)
    await ask(engine, SaveTemplate("mine", "night"))
    with pytest.raises(NameTaken, match="is called 'night' already"):
        await ask(engine, SaveTemplate("mine", "night"))
    assert isinstance(await ask(engine, SaveTemplate("mine", "night", replace=True)), TemplateSaved)


async def test_a_draft_with_mistakes_is_no_template(engine: Engine) -> None:
    await draft(engine, StartDraft("mine"))
    with pytest.raises(DescriptorError, match="targets"):
        await ask(engine, SaveTemplate("mine", "night"))
    assert not engine.workspace.templates.exists()


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "x" * 80, "a\nb"])
async def test_names_stay_in_their_folder(engine: Engine, name: str) -> None:
    await with_chain(engine)
    for request in (ReadDraft(name), SaveTemplate("mine", name), ChangeDraft(name, text="")):
        with pytest.raises(UsageError):
            await ask(engine, request)
    assert sorted(p.name for p in engine.workspace.drafts.iterdir()) == ["mine.yaml"]


async def test_observers_look_and_change_nothing(engine: Engine) -> None:
    before = await with_chain(engine)
    assert await draft(engine, ReadDraft("mine"), OBSERVER) == before
    for request in (
        StartDraft("theirs"),
        ChangeDraft("mine", text=""),
        DiscardDraft("mine"),
        SaveTemplate("mine", "night"),
    ):
        with pytest.raises(Exception, match="observers may watch"):
            await ask(engine, request, OBSERVER)
    assert await draft(engine, ReadDraft("mine")) == before


async def test_over_ssh_rates_are_no_paths_and_the_host_stays_out_of_reach(engine: Engine) -> None:
    before = await draft(engine, StartDraft("mine", "demo"), REMOTE)
    document = copy.deepcopy(dict(before.document or {}))
    document["primary_workload_parameter"]["range"] = ["50/s", "4000/s"]
    changed = await draft(engine, ChangeDraft("mine", document), REMOTE)
    assert not changed.mistakes
    for part in (
        {"agents": {"local": {"class": "docker", "url": "tcp://elsewhere:2375"}}},
        {"initialization": [{"manager": "haproxy", "command": ["reboot"]}]},
        {
            "attach": {
                "web": {
                    "cgroup": "/web",
                    "url": "http://127.0.0.1/",
                    "max_load": "9/s",
                    "guard": "none",
                    "resources": "command",
                    "commands": {"vcpu": {"set": ["reboot"], "read": ["true"]}},
                }
            }
        },
    ):
        with pytest.raises(Exception, match="not changed over SSH"):
            await ask(engine, ChangeDraft("mine", {**document, **part}), REMOTE)
    with pytest.raises(Exception, match="must be YAML"):
        await ask(engine, ChangeDraft("mine", text="["), REMOTE)
    assert await draft(engine, ReadDraft("mine"), REMOTE) == changed


async def test_the_palette_says_what_people_choose_by(engine: Engine) -> None:
    palette = await ask(engine, GetPalette())
    assert isinstance(palette, Palette)
    haproxy = palette.vnf("haproxy")
    assert haproxy is not None
    assert (haproxy.placement, haproxy.balances, haproxy.origin) == ("inline", True, "shipped")
    assert haproxy.default_vcpu == 0.25
    assert "source" in [end.name for end in palette.ends]
    assert "bisection" in palette.samplers
    assert palette.primaries["rate"] == "300/s"
    assert not palette.notes


async def test_a_broken_template_is_named_and_the_others_are_there(engine: Engine) -> None:
    folder = engine.workspace.templates / "vnfs" / "ids"
    folder.mkdir(parents=True)
    (folder / "vnf.yaml").write_text("kind: vnf\nimage: ids\nplacement: sideways\n")
    palette = await ask(engine, GetPalette())
    assert isinstance(palette, Palette)
    assert palette.vnf("ids") is None
    assert palette.vnf("haproxy") is not None
    assert "sideways" in palette.notes[0]
