"""What is measured: campaigns and the host, who controls them, points and samples."""

from __future__ import annotations

from workbench.domain.errors import UsageError
from workbench.domain.lab import HostMeasured, MeasureHost
from workbench.domain.messages import (
    AnswerControl,
    AskControl,
    ContinueRun,
    Done,
    PauseRun,
    PlanCampaign,
    Planned,
    ResumeSession,
    RunAccepted,
    RunCampaign,
    SkipConfiguration,
    StopRun,
)
from workbench.domain.sample_review import DecideSample, ExtendBudget, RequestPoint
from workbench.engine.handlers.registry import Asker, Handlers, Services

handles = Handlers()


@handles(RunCampaign)
async def run(s: Services, request: RunCampaign, asker: Asker) -> RunAccepted:
    return await s.queue.start(request)


@handles(ResumeSession)
async def resume(s: Services, request: ResumeSession, asker: Asker) -> RunAccepted:
    await s.fleets.refuse_measuring(request.session)
    return await s.queue.resume(request)


@handles(PlanCampaign)
async def plan(s: Services, request: PlanCampaign, asker: Asker) -> Planned:
    return await s.queue.plan(request)


@handles(MeasureHost)
async def measure_host(s: Services, request: MeasureHost, asker: Asker) -> HostMeasured:
    return await s.queue.measure_host(request)


@handles(PauseRun)
async def pause(s: Services, request: PauseRun, asker: Asker) -> Done:
    if request.session in s.fleets:
        raise UsageError(
            "is measured by a fleet, which does not pause",
            where=request.session,
            remedy="Stop it; the same command goes on where it stood",
        )
    return await s.queue.pause(request.session, request.by)


@handles(ContinueRun)
async def go_on(s: Services, request: ContinueRun, asker: Asker) -> Done:
    return await s.queue.go_on(request.session, request.by)


@handles(StopRun)
async def stop(s: Services, request: StopRun, asker: Asker) -> Done:
    if request.session in s.fleets:
        await s.fleets.stop(request.session, request.by, abort=request.abort)
        return Done("its hosts are told to stop; the samples taken so far are stored there")
    return await s.queue.stop(request.session, request.by, abort=request.abort)


@handles(SkipConfiguration)
async def skip(s: Services, request: SkipConfiguration, asker: Asker) -> Done:
    return s.queue.skip(request)


@handles(DecideSample)
async def decide_sample(s: Services, request: DecideSample, asker: Asker) -> Done:
    return await s.queue.decide_sample(request)


@handles(RequestPoint)
async def request_point(s: Services, request: RequestPoint, asker: Asker) -> Done | RunAccepted:
    await s.fleets.refuse_measuring(request.session)
    return await s.queue.request_point(request)


@handles(ExtendBudget)
async def extend_budget(s: Services, request: ExtendBudget, asker: Asker) -> Done:
    return await s.queue.extend_budget(request)


@handles(AskControl)
async def ask_control(s: Services, request: AskControl, asker: Asker) -> Done:
    return s.control_locks.ask(request.session, asker.who)


@handles(AnswerControl)
async def answer_control(s: Services, request: AnswerControl, asker: Asker) -> Done:
    return s.control_locks.answer(request.session, request.give, asker.who)
