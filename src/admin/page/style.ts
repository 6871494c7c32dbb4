/** The look of the status page: system fonts, one sheet, light and dark, one column on narrow screens. */
export const style = `
:root {
  --ground: #f4f5f7; --panel: #ffffff; --ink: #151a21; --soft: #596273; --line: #e1e4ea; --hover: #f8f9fb;
  --accent: #2552c8; --track: #e6e9ee;
  --ok: #0a7446; --ok-tint: #e3f4ea; --warning: #8a5200; --warning-tint: #fcf0d8;
  --failed: #b4231a; --failed-tint: #fde7e4; --calm: #46505f; --calm-tint: #eceff3;
  --ok-fill: #1d9a63; --warning-fill: #d98f16; --failed-fill: #d6443a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0d1015; --panel: #151a21; --ink: #e8ecf2; --soft: #95a1b2; --line: #252c36; --hover: #1a2029;
    --accent: #8fb0ff; --track: #2a323d;
    --ok: #58cf98; --ok-tint: #11291e; --warning: #f2bd63; --warning-tint: #2c2211;
    --failed: #ff8d84; --failed-tint: #351816; --calm: #b2bcc9; --calm-tint: #222934;
    --ok-fill: #2fa871; --warning-fill: #d39a35; --failed-fill: #de574d;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: 1rem; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Vazirmatn", "Noto Sans Arabic", Tahoma, sans-serif;
  font-variant-numeric: tabular-nums;
}
main { max-width: 1160px; margin: 0 auto; padding: 24px 24px 48px; }
h1, h2, h3, p, dl, dd, ul, ol { margin: 0; padding: 0; }
ul, ol { list-style: none; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
small { display: block; font-size: 12.5px; line-height: 1.4; color: var(--soft); font-weight: 400; }
.row { display: flex; align-items: center; justify-content: space-between; gap: 4px 16px; flex-wrap: wrap; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.icon { width: 1em; height: 1em; flex: none; fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
.panel, .card { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; }

.masthead { display: flex; align-items: baseline; gap: 4px 16px; flex-wrap: wrap; margin-bottom: 16px; color: var(--soft); font-size: 13.5px; }
.masthead h1 { color: var(--ink); font-size: 19px; letter-spacing: -0.01em; }
.masthead span::before { content: "·"; margin: 0 7px; }
.masthead .now { margin-inline-start: auto; }
.masthead .now b { color: var(--ink); font-size: 15px; }

.verdict { display: flex; gap: 18px; align-items: flex-start; padding: 20px 22px; border-radius: 14px; border: 1px solid var(--line); background: var(--panel); }
.verdict.ok { background: var(--ok-tint); border-color: transparent; }
.verdict.warning { background: var(--warning-tint); border-color: transparent; }
.verdict.failed { background: var(--failed-tint); border-color: transparent; }
.seal { display: grid; place-items: center; width: 44px; height: 44px; flex: none; border-radius: 50%; color: #fff; font-size: 24px; }
.ok > .seal { background: var(--ok-fill); } .warning > .seal { background: var(--warning-fill); } .failed > .seal { background: var(--failed-fill); }
.verdict > div { min-width: 0; overflow-wrap: anywhere; }
.headline { font-size: 22px; line-height: 1.3; font-weight: 650; letter-spacing: -0.015em; margin-top: 1px; }
.verdict ul { margin-top: 6px; display: grid; gap: 3px; }
.verdict li { position: relative; padding-inline-start: 18px; }
.verdict li::before { content: ""; position: absolute; inset-inline-start: 2px; top: .5em; width: 8px; height: 8px; border-radius: 50%; background: var(--failed-fill); }
.verdict li.warning::before { background: none; border: 2px solid var(--warning-fill); }
.verdict li a { color: inherit; text-decoration: underline; text-decoration-color: color-mix(in srgb, currentColor 30%, transparent); text-underline-offset: 3px; }
.verdict li a:hover { text-decoration-color: currentColor; }

.fact dt { font-size: 12.5px; color: var(--soft); }
.numbers { display: grid; grid-template-columns: repeat(5, 1fr); margin: 14px 0 0; background: var(--panel); border: 1px solid var(--line); border-radius: 12px; overflow: hidden; gap: 1px; }
.numbers .fact { padding: 13px 18px 14px; box-shadow: 0 0 0 1px var(--line); }
.numbers dd { font-size: 24px; line-height: 1.3; font-weight: 600; letter-spacing: -0.02em; }
.numbers small { letter-spacing: 0; }

section { margin-top: 32px; }
/* The first frame has the verdict alone; the lists, which take longer than all above them, come in the next. In the first frame their place is 20,000 px tall, so that a reload can scroll to where the reader was. */
:root:not([data-painted], :has(:target)) section { animation: next-frame 1ms; }
:root:not([data-painted], :has(:target)) section:first-of-type { animation: next-frame 1ms, tall 1ms; }
@keyframes next-frame { from, to { content-visibility: hidden; } }
@keyframes tall { from, to { min-block-size: 20000px; } }
.aside { color: var(--soft); font-size: 13px; }
section > header { margin-bottom: 10px; min-height: 28px; }
h2 { font-size: 16px; letter-spacing: -0.005em; }
h3 { font-size: 16px; }
.badge { display: inline-flex; align-items: center; gap: 5px; padding: 1px 9px 1px 7px; border-radius: 99px; font-size: 13px; font-weight: 550; white-space: nowrap; }
.badge.ok, .chip.ok { color: var(--ok); background: var(--ok-tint); }
.badge.warning, .chip.warning { color: var(--warning); background: var(--warning-tint); }
.badge.failed, .chip.failed { color: var(--failed); background: var(--failed-tint); }
.badge.calm, .chip.calm { color: var(--calm); background: var(--calm-tint); }
:target { scroll-margin-top: 24px; }
.card:target { outline: 2px solid var(--accent); outline-offset: 2px; }

.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 430px), 1fr)); gap: 14px; }
.card { padding: 16px 18px; }
.reason { color: var(--soft); font-size: 13.5px; margin-top: 4px; } .reason, .plan, td small { overflow-wrap: anywhere; }
.budget { margin: 14px 0 16px; font-size: 13.5px; }
.card .plan { margin: 12px 0 0; color: var(--soft); font-size: 12.5px; }
.budget .row { color: var(--soft); }
.budget b { color: var(--ink); font-size: 16px; }
.budget .note { font-size: 12.5px; }
.bar { display: block; margin: 5px 0 3px; }
.bar .track { fill: var(--track); }
.bar .fill { fill: var(--accent); }
.budget.warning .fill { fill: var(--warning-fill); } .budget.failed .fill { fill: var(--failed-fill); }
.spent { margin-top: 8px; } .parts { display: flex; flex-wrap: wrap; gap: 0 12px; color: var(--soft); }
.parts span { display: inline-flex; align-items: center; gap: 5px; } .swatch { width: 8px; height: 8px; }
.budget rect.poll { fill: var(--accent); } .budget rect.context { fill: var(--ok-fill); } .budget rect.walk { fill: var(--warning-fill); }
.budget rect.history { fill: color-mix(in srgb, var(--accent) 45%, var(--panel)); } .budget rect.rules { fill: color-mix(in srgb, var(--ok-fill) 45%, var(--panel)); }
.budget rect.sweep { fill: color-mix(in srgb, var(--warning-fill) 45%, var(--panel)); } .budget rect.api { fill: var(--soft); } .budget rect.unknown { fill: var(--track); }
.bar .mark { fill: var(--ink); stroke: var(--panel); stroke-width: 2; paint-order: stroke; }
.day { margin: 14px 0 0; } .day svg { display: block; } .day text { fill: var(--soft); font-size: 11px; direction: ltr; }
.day .note { color: var(--soft); font-size: 12.5px; margin-top: 3px; } .day .parts { gap: 0 12px; } .day .hit { fill: transparent; } .day g:hover .hit { fill: var(--hover); }
.day .planned { fill: color-mix(in srgb, var(--accent) 22%, var(--panel)); } .day .spent { fill: var(--accent); } .day .seen { fill: var(--ok-fill); } .day .base { fill: var(--line); } .day .mark { fill: var(--ink); opacity: .55; }
.facts { display: grid; grid-template-columns: repeat(4, 1fr); gap: 12px 16px; padding-top: 13px; border-top: 1px solid var(--line); }
.facts dd { font-weight: 550; }

table { width: 100%; border-collapse: collapse; font-size: 14px; }
th, td { text-align: start; vertical-align: top; padding: 11px 10px; font-weight: 400; }
th:first-child, td:first-child { padding-inline-start: 18px; } th:last-child, td:last-child { padding-inline-end: 18px; }
thead th { font-size: 12.5px; color: var(--soft); padding-block: 10px 8px; white-space: nowrap; }
tbody tr { border-top: 1px solid var(--line); }
tbody tr:target { background: var(--hover); box-shadow: inset 3px 0 var(--accent); } [dir=rtl] tbody tr:target { box-shadow: inset -3px 0 var(--accent); }
tbody th { font-weight: 600; min-width: 9em; } tbody th, h3 { overflow-wrap: anywhere; }
table.sinks thead th:nth-child(n+3):nth-child(-n+8), table.letters thead th:nth-child(3), td.number { text-align: end; white-space: nowrap; }
td.number small { white-space: normal; }
td.none { color: var(--soft); }
td.number a { font-weight: 600; color: inherit; text-decoration: underline; text-decoration-color: color-mix(in srgb, currentColor 35%, transparent); text-underline-offset: 3px; }
td.warning { color: var(--warning); } td.failed { color: var(--failed); }
td span.ok { color: var(--ok); } td span.warning { color: var(--warning); } td span.failed { color: var(--failed); }
.answer { max-width: 34ch; overflow-wrap: anywhere; }

.filters { display: flex; flex-wrap: wrap; gap: 2px; font-size: 13px; }
.filters a, .filters span { padding: 3px 10px; border-radius: 99px; color: var(--soft); }
.filters span { color: var(--ink); font-weight: 600; }
.filters a:hover { background: var(--calm-tint); text-decoration: none; }
.filters a[aria-current] { background: var(--calm-tint); color: var(--ink); font-weight: 550; }
.search { margin-bottom: 10px; } .search summary { width: fit-content; min-height: 24px; padding: 2px 4px; font-size: 13px; color: var(--soft); cursor: pointer; }
.search form { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 10px 12px; align-items: end; padding: 8px 0 6px; }
.search label:has([type=datetime-local]) { grid-column: span 2; }
.search label { display: block; min-width: 0; font-size: 12.5px; color: var(--soft); } .search .act { min-height: 34px; }
.search input, .search select { display: block; box-sizing: border-box; width: 100%; min-width: 0; height: 34px; margin-top: 3px; padding: 4px 9px; font: inherit; font-size: 14px; color: var(--ink); background: var(--panel); border: 1px solid var(--line); border-radius: 8px; }
.search input:user-invalid { border-color: var(--failed); }
.alerts > li { display: grid; grid-template-columns: 92px minmax(0, 1fr) minmax(0, auto); gap: 3px 18px; padding: 12px 18px; border-top: 1px solid var(--line); }
.alerts > li:first-child { border-top: 0; }
.when, .when time { color: var(--soft); font-size: 12.5px; }
.when time { display: block; }
.when b { display: block; color: var(--ink); font-size: 14px; font-weight: 550; line-height: 1.6; }
.title { font-size: 15.5px; line-height: 1.6; font-weight: 550; overflow-wrap: anywhere; text-align: start; }
.title a { color: var(--ink); }
.title a, .title bdi { display: block; width: fit-content; max-width: 100%; }
.meta { display: flex; flex-wrap: wrap; gap: 0 14px; color: var(--soft); font-size: 12.5px; }
.meta b { color: var(--ink); font-weight: 550; }
.meta a { color: inherit; }
.verdict li a, .meta a, td.number a, footer a, .filters a, .back a, .letters a, .aside a, .more a { display: inline-block; min-height: 24px; min-width: 24px; }
.chips { display: flex; flex-wrap: wrap; gap: 5px; align-content: flex-start; justify-content: flex-end; max-width: 400px; }
.chip { display: inline-flex; align-items: center; gap: 4px; padding: 1px 8px 1px 6px; border-radius: 6px; font-size: 12.5px; overflow-wrap: anywhere; }
.chip i { font-style: normal; }
.trouble { grid-column: 2 / -1; font-size: 13px; overflow-wrap: anywhere; }
.trouble.warning { color: var(--warning); } .trouble.failed { color: var(--failed); } .trouble.calm { color: var(--soft); }
.live { position: fixed; inset-block-end: 12px; inset-inline-end: 14px; z-index: 2; display: flex; gap: 6px; }
.live .act { box-shadow: 0 2px 10px rgb(10 14 20 / .14); }
.hours { display: block; margin-top: 6px; max-width: 100%; } .hours .track { fill: var(--track); } .hours .good { fill: var(--ok-fill); } .hours .bad { fill: var(--failed-fill); }
.curve { display: block; margin-block-start: 4px; margin-inline-start: auto; max-width: 100%; } .curve path { fill: none; stroke: var(--accent); stroke-width: 1.5; stroke-linecap: round; stroke-linejoin: round; }
.acts { display: flex; flex-wrap: wrap; gap: 6px; margin-top: 10px; }
.act { font: inherit; font-size: 13px; min-height: 28px; padding: 2px 11px; border-radius: 8px; border: 1px solid var(--line); background: var(--panel); color: var(--ink); cursor: pointer; }
.act:hover { background: var(--hover); border-color: var(--soft); } .act.copy { color: var(--soft); }
.act:focus-visible, input:focus-visible, select:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.act.go { background: var(--accent); border-color: var(--accent); color: var(--panel); font-weight: 600; }
dialog { width: min(460px, calc(100vw - 24px)); padding: 20px 22px; border: 1px solid var(--line); border-radius: 14px; background: var(--panel); color: var(--ink); }
dialog::backdrop { background: rgb(10 14 20 / .5); }
dialog p { margin-top: 8px; overflow-wrap: anywhere; } dialog .acts { justify-content: flex-end; }
dialog label { display: block; margin-top: 12px; font-size: 13px; color: var(--soft); } dialog label[hidden] { display: none; }
dialog input, dialog select { display: block; width: 100%; min-height: 34px; margin-top: 3px; padding: 4px 9px; font: inherit; color: var(--ink); background: var(--ground); border: 1px solid var(--line); border-radius: 8px; }
dialog label small { margin-top: 5px; }
dialog .failed, .steps .warning, .attempts .warning { color: var(--warning); } dialog .failed, .attempts .failed { color: var(--failed); } .attempts .ok { color: var(--ok); }
.back { margin-bottom: 12px; font-size: 13.5px; }
.story h1 { font-size: 22px; line-height: 1.5; overflow-wrap: anywhere; } .story h1 a { color: var(--ink); }
.story h1 bdi { display: block; width: fit-content; max-width: 100%; }
.steps, .attempts { display: grid; gap: 6px; margin-top: 12px; overflow-wrap: anywhere; } .attempts { font-size: 14px; }
.attempts .number { color: var(--soft); } .attempts .answer { max-width: none; }
.round { color: var(--soft); border-top: 1px dashed var(--line); padding-top: 6px; }
.audit > li { padding: 9px 18px; border-top: 1px solid var(--line); font-size: 14px; overflow-wrap: anywhere; } .audit > li:first-child { border-top: 0; }
.more { padding: 12px 18px; border-top: 1px solid var(--line); }
.empty { padding: 36px 18px; text-align: center; color: var(--soft); }
footer { display: flex; gap: 18px; flex-wrap: wrap; margin-top: 28px; font-size: 13px; }
footer a { color: var(--soft); }
.stale { display: none; position: sticky; top: 0; z-index: 1; padding: 9px 24px; text-align: center; background: var(--failed); color: var(--panel); font-weight: 550; }
[data-stale] .stale { display: block; }
[data-stale] main { filter: grayscale(1); }

/* Persian: names stay together, letters are not spaced, bars fill from the right; charts keep their time from left to right. */
[dir=rtl] :is(h1, h2, h3, .headline, .numbers dd) { letter-spacing: 0; }
[dir=rtl] :is(h3, .masthead p, .masthead span, tbody th, .meta span, .meta a, .spent span) { unicode-bidi: isolate; }
[dir=rtl] :is(small, time, time b) { unicode-bidi: isolate; } [dir=rtl] bdi:has(> time) { display: inline-block; } [dir=rtl] .numbers dd { font-size: 19px; } [dir=rtl] .alerts > li { grid-template-columns: 136px minmax(0, 1fr) minmax(0, auto); }
[dir=rtl] svg.bar { transform: scaleX(-1); } [dir=rtl] :is(thead th, td.number, td.state .badge) { white-space: normal; }
dialog p, dialog input { unicode-bidi: plaintext; }

@media (scripting: none) { .act:not(.search .act) { display: none; } }
@media (max-width: 1100px) { th, td { padding-inline: 5px; } }
@media (max-width: 860px) {
  main { padding: 16px 14px 40px; }
  .masthead .now { margin-inline-start: 0; width: 100%; }
  .numbers { grid-template-columns: repeat(2, 1fr); }
  .numbers .fact { padding: 11px 14px; }
  .numbers .fact:last-child { grid-column: 1 / -1; }
  .facts { grid-template-columns: repeat(2, 1fr); }
  .verdict { padding: 16px; gap: 14px; }
  .verdict > div { min-width: 0; overflow-wrap: anywhere; }
.headline { font-size: 19px; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, tbody { display: block; }
  tbody tr { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 10px 12px; padding: 14px; }
  tbody tr:first-child { border-top: 0; }
  tbody th, tbody td, tbody th:first-child, tbody td:last-child { padding: 0; }
  tbody th { grid-column: 1 / 3; min-width: 0; } tbody th small { display: inline; margin-inline-start: 8px; }
  td.state { text-align: end; margin-inline-start: -12px; } td.state::before { content: none; } td.state .badge { white-space: normal; }
  td.state small { grid-column: 1 / -1; }
  tbody td::before { content: attr(data-label); display: block; font-size: 12.5px; color: var(--soft); }
  td.number { text-align: start; white-space: normal; }
  td.wide { grid-column: 1 / -1; }
  .answer { max-width: none; }
  .alerts > li, [dir=rtl] .alerts > li { grid-template-columns: minmax(0, 1fr); padding: 12px 14px; }
  .when time { display: inline; margin-inline-end: 8px; }
  .when b { display: inline; }
  .chips { justify-content: flex-start; margin-top: 4px; max-width: none; }
  .trouble { grid-column: 1; }
}
`
