// A file of one run has its data in itself: `troupe export RUN --html`.
import type { Event, RunBudget, RunInfo, Span, Transcript } from "./api";

export interface RunFile { info: RunInfo; events: Event[]; budget: RunBudget; spans: Span[]; transcripts: Record<string, Transcript>; left: string[]; exported?: string }

const data = document.getElementById("run-data");
export const file: RunFile | null = data ? JSON.parse(data.textContent ?? "null") : null;
