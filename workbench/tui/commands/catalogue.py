"""The one list of screens: name, key, title, one line for the palette, help text.

A screen that stands here has its key, its tab, its palette entry and its help page;
`docs/screens.md` tells how to add one. Keys are digits in the order of a day's work; a digit that
is missing belongs to a screen that is not built yet.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A full screen of the workbench."""

    name: str
    """Stable: part of the action's id `go.NAME`, of `--screen NAME` and of file names."""
    made_by: str
    """Module below `tui.screens` and class, imported when it is first opened: a screen that nobody
    opens costs nothing."""
    key: str
    title: str
    """One or two words, for tab and palette."""
    short: str
    """What the tab is called in a narrow terminal; nine of them fit 60 columns."""
    summary: str
    about: str
    """What the screen is for and how it is used; the head of its help page."""
    of_session: bool = True
    """Whether it shows the open session, and so needs one."""
    of_draft: bool = False
    """Whether it shows the open draft, and can open one."""
    has_list: bool = False
    """Whether a list with a cursor has the focus, which the keys of `list` move."""
    tab: bool = True
    """Whether its tab is always there, or only while it is shown."""

    @property
    def places(self) -> tuple[str, ...]:
        """The places whose actions it offers, its own first."""
        own = [self.name] + ["list"] * self.has_list
        shared = ["session"] * self.of_session + ["draft"] * self.of_draft
        return (*own, *shared, "anywhere")


SCREENS: tuple[Entry, ...] = (
    Entry(
        "sessions",
        "sessions.sessions:SessionsScreen",
        "1",
        "Sessions",
        "Sess",
        "Everything that was measured in this workspace, and what can be",
        "A session is one run of a campaign with all its samples; it is one file. Enter opens the "
        "one under the cursor, whether it is being measured, finished or cut off. A session that "
        "is deleted goes to the trash of the workspace, and u brings it back.",
        has_list=True,
        of_session=False,
    ),
    Entry(
        "chain",
        "chain.chain:ChainScreen",
        "2",
        "Chain",
        "Chain",
        "Build what is profiled: functions in series and in parallel",
        "A draft is a campaign that is being written; every change is kept. Its targets are on the "
        "left, the one under the cursor is drawn. A function is added behind the part under the "
        "cursor, or in parallel with it; the descriptor shows what that means, and mistakes stand "
        "below their lines. A chain policy makes all chains that obey it targets.",
        has_list=True,
        of_session=False,
        of_draft=True,
    ),
    Entry(
        "campaign",
        "campaign.campaign_screen:CampaignScreen",
        "3",
        "Campaign",
        "Camp",
        "Grid, load, SLA, sampler and budget of the draft, and what that costs",
        "A campaign is written here before it runs: which vCPU shares each function gets, the load "
        "and its range, the KPI and its ceiling, the sampler and its budget. Values are typed with "
        "their units. Beside it stands what each sampler would take in samples and lab time, as "
        "you type. Nothing runs until you say so.",
        of_session=False,
        of_draft=True,
    ),
    Entry(
        "live",
        "live.live:LiveScreen",
        "4",
        "Live",
        "Live",
        "The profile as it is measured: samples, fit, breakpoints, usage",
        "The plot shows one configuration: its samples with their intervals, the fitted curve with "
        "its band, and the point that is measured next. It follows what is being measured until "
        "you choose a configuration, by keys or mouse. Freezing holds the drawing of every screen "
        "while measuring goes on.",
    ),
    Entry(
        "compare",
        "compare.compare:CompareScreen",
        "5",
        "Compare",
        "Comp",
        "A chain as predicted and as measured; two sessions against each other",
        "What the functions' profiles say of a chain stands beside what was measured of it; who "
        "limits stands along the axis of the load. The list has first what deviates beyond both "
        "intervals and beyond what the host differs from itself, then the rest by error, and the "
        "plot follows its cursor. Computing takes seconds; what is shown stays until it is done.",
        has_list=True,
    ),
    Entry(
        "models",
        "models.models:ModelsScreen",
        "6",
        "Models",
        "Model",
        "Versions, scores, residuals, coefficients, influence; roll back",
        "Scores are cross-validated: each method predicts samples that it has not seen, and so are "
        "the residuals. A key scores all methods on a target's samples. A version is the best of "
        "that, or what a retraining made; the mark says which one is in force. A chain can be "
        "rolled back to any accepted one, and to its functions' profiles.",
        has_list=True,
    ),
    Entry(
        "canary",
        "canary.canary:CanaryScreen",
        "7",
        "Canary",
        "Canary",
        "Load a real chain in small steps, learn what it adds, decide",
        "A canary loads a real chain step by step, up to a share of the SLA's load, and stops "
        "where a guard does not hold. Each step shows what was expected before it was measured, "
        "and how much of the guard was left. What was learned is a proposal: accepted, it says the "
        "chain's KPI; rejected, nothing changes. Beyond the highest kept load the curve is a "
        "guess.",
        has_list=True,
    ),
    Entry(
        "recommend",
        "recommend.recommend:RecommendScreen",
        "8",
        "Recommend",
        "Recom",
        "Which allocation carries an SLA, at what cost, and how surely",
        "The question is an SLA, or several, of a chain; the profiles answer, and nothing is "
        "measured unless you say so. The list shows the allocations that hold by rising cost, or "
        "what comes closest; the lower part is about the one under the cursor. What is recommended "
        "can be verified on the lab and written as Helm values, Compose and other formats.",
        has_list=True,
    ),
    Entry(
        "events",
        "events:EventsScreen",
        "9",
        "Events",
        "Event",
        "What happened, line by line; filter, follow, go to a sample",
        "Every line is an event that the session file holds. The list follows the latest one until "
        "you move the cursor; enter goes to the sample or configuration that a line is about.",
        has_list=True,
    ),
    Entry(
        "why",
        "why.why_screen:WhyScreen",
        "0",
        "Why",
        "Why",
        "Why a sample is as slow as it is: cause, evidence, rivals, what to do",
        "The sentence is the answer; below it what to do, and the chain hop by hop. It is about "
        "what the cursor was on: an outlier on Compare, a sample or the configuration with its "
        "breakpoint on Live, a line of Events; else about the sample that takes longest beside its "
        "functions alone. Strength is the share that a cause accounts for, not a probability. How "
        "often a cause was right is of trials on a real host whose cause was known; causes that no "
        "such trial named say so. The evidence has each function alone "
        "beside what it does in the chain, what changed most first, with curves over the load.",
        has_list=True,
        tab=False,
    ),
    Entry(
        "hosts",
        "fleet_hosts.hosts_screen:HostsScreen",
        "ctrl+n",
        "Hosts",
        "Hosts",
        "Lab hosts of a campaign: state, shard, pace, noise; how long still",
        "A campaign that runs over a fleet is cut into shards, each measured whole by one host. "
        "The line above says how far the whole is and when it ends with the hosts that are there. "
        "Below the list stands all of the host under the cursor, and how it differs from the first "
        "one by the anchor points that every host measures. Samples come when all shards are "
        "measured.",
        has_list=True,
        tab=False,
    ),
    Entry(
        "watch",
        "function_watch.watch_screen:WatchScreen",
        "ctrl+l",
        "Watch",
        "Watch",
        "Running functions: KPI from counters, alarms",
        "The command `workbench watch` learns from this session's samples and reads the counters "
        "of a function that runs, once a second; nothing is sent through it. Each watch has a line "
        "here, trouble first; the one under the cursor has its last ten minutes with the 95 % "
        "interval, and below them what changed and how sure the model is. The last minutes are "
        "kept in memory alone. In a terminal `workbench counters` says which counters explain a "
        "KPI and which model predicts it best; the palette has both commands.",
        has_list=True,
        tab=False,
    ),
)


def entry(name: str) -> Entry:
    """The screen of that name. Raises `KeyError` where there is none."""
    found = next((entry for entry in SCREENS if entry.name == name), None)
    if found is None:
        raise KeyError(name)
    return found
