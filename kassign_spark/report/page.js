"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = Object.fromEntries(data.columns.map((name, i) => [name, i]));
  const PAGE = 50, PRINTED = 100, PRINTED_OPEN = 5, BRIEF = 12;
  const number = (value) => (value === null ? "–" : value.toLocaleString("en-GB"));
  const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

  /* Text goes in as text alone: names are free text in Kafka. */
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }
  const cell = (value) => make("td", { class: "n" }, typeof value === "number" || value === null ? number(value) : value);
  const range = (least, most) => (least === null ? "–" : least === most ? number(most) : `${number(least)}–${number(most)}`);

  /* A table of many rows, of which a page is shown: searched, sorted, turned over. */
  function bigTable({ id, noun, columns, rows, keep, text, after }) {
    const table = document.getElementById(`${id}-table`);
    if (!table) return null;
    const body = table.tBodies[0], pager = document.getElementById(`${id}-pager`);
    const count = document.getElementById(`${id}-count`), search = document.getElementById(`${id}-search`);
    const texts = rows.map((row) => text(row).toLowerCase());
    const state = { sort: null, down: false, page: 0, size: PAGE };
    const heads = columns.map((column) => {
      const head = make("th", { scope: "col", class: column.text ? null : "n" });
      head.append(make("button", { type: "button", title: column.title, onclick: () => sortBy(column) }, column.label));
      return head;
    });
    table.tHead.append(make("tr", {}, ...heads));

    function sortBy(column) {
      const first = !column.text;
      if (state.sort !== column) Object.assign(state, { sort: column, down: first });
      else if (state.down === first) state.down = !first;
      else state.sort = null;
      state.page = 0;
      draw();
    }
    function found() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const shown = rows.map((_, i) => i).filter((i) => keep(rows[i]) && words.every((word) => texts[i].includes(word)));
      if (state.sort) {
        const sign = state.down ? -1 : 1, of = state.sort.by;
        shown.sort((a, b) => {
          const x = of(rows[a]), y = of(rows[b]);
          if (x === y) return a - b;
          if (x === null || y === null) return x === null ? 1 : -1;
          return (x < y ? -1 : 1) * sign;
        });
      }
      return shown;
    }
    function draw() {
      const shown = found(), pages = Math.max(1, Math.ceil(shown.length / state.size));
      state.page = Math.min(state.page, pages - 1);
      const from = state.page * state.size, page = shown.slice(from, from + state.size);
      body.replaceChildren(...page.flatMap((i) => after(rows[i], i, columns)));
      if (!page.length) body.append(make("tr", {}, make("td", { colspan: columns.length, class: "soft" }, `No ${noun} fits.`)));
      heads.forEach((head, i) => {
        if (state.sort === columns[i]) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
        head.firstChild.textContent = columns[i].label + (state.sort === columns[i] ? (state.down ? " ↓" : " ↑") : "");
      });
      count.textContent = shown.length === rows.length ? plural(rows.length, noun) : `${number(shown.length)} of ${plural(rows.length, noun)}`;
      const turn = (by) => () => { state.page += by; draw(); };
      pager.replaceChildren(...(pages < 2 ? [] : [
        make("button", { type: "button", disabled: state.page === 0, onclick: turn(-1) }, "Previous"),
        make("span", {}, `page ${state.page + 1} of ${number(pages)}`),
        make("button", { type: "button", disabled: state.page === pages - 1, onclick: turn(1) }, "Next"),
      ]));
    }
    search.addEventListener("input", () => { state.page = 0; draw(); });
    return { draw, state, found, reset: () => { state.page = 0; draw(); } };
  }

  /* The groups. */
  const assignor = document.getElementById("group-assignor"), only = document.getElementById("group-only");
  data.assignors.forEach((name, i) => assignor.append(make("option", { value: i }, name || "none")));
  const tests = {
    uneven: (g) => g[at.is_balance_optimal] === 0,
    idle: (g) => g[at.idle_after] > 0,
    moving: (g) => g[at.moved] > 0,
    pausing: (g) => g[at.planned_paused] > 0,
    withheld: (g) => g[at.withheld_count] > 0,
    unsettled: (g) => g[at.planned_settles] === 0,
    cross: (g) => g[at.cross_rack_count] > 0,
    problems: (g) => g[at.problem_count] + g[at.violation_count] > 0,
    violations: (g) => g[at.violation_count] > 0,
  };
  const spread = (g) => g[at.max_assigned] - g[at.min_assigned];
  const opened = new Set();

  function badges(g) {
    const say = (kind, text) => make("span", { class: `badge ${kind}` }, text);
    return [
      g[at.violation_count] ? say("error", plural(g[at.violation_count], "violation")) : null,
      tests.unsettled(g) ? say("error", "never settles") : null,
      tests.uneven(g) ? say("warning", "uneven") : null,
      tests.idle(g) ? say("warning", `${number(g[at.idle_after])} idle`) : null,
      g[at.problem_count] ? say("warning", plural(g[at.problem_count], "problem")) : null,
      tests.withheld(g) ? say("note", `${number(g[at.withheld_count])} withheld at first`) : null,
      tests.cross(g) ? say("note", `${number(g[at.cross_rack_count])} across racks`) : null,
    ];
  }
  const groupColumns = [
    { label: "Group", text: true, by: (g) => g[at.name] },
    { label: "Assignor", text: true, by: (g) => data.assignors[g[at.assignor]], show: (g) => make("td", { class: "nowrap" }, data.assignors[g[at.assignor]] || "–") },
    { label: "Members", by: (g) => g[at.member_count] },
    { label: "Partitions", by: (g) => g[at.partition_count] },
    { label: "Load before", title: "partitions of the least and the most loaded member", by: (g) => g[at.max_before], show: (g) => cell(range(g[at.min_before], g[at.max_before])) },
    { label: "Load after", title: "partitions of the least and the most loaded member", by: (g) => g[at.max_assigned], show: (g) => cell(range(g[at.min_assigned], g[at.max_assigned])) },
    { label: "Spread", title: "between the least and the most loaded member, after", by: spread },
    { label: "Moved", by: (g) => g[at.moved] },
    { label: "Least", title: "the fewest that must move for the best balance", by: (g) => g[at.least_moves] },
    { label: "Paused", by: (g) => g[at.planned_paused] },
    { label: "Rounds", by: (g) => g[at.planned_rounds] },
    { label: "To look at", text: true, by: (g) => -(g[at.violation_count] * 1e6 + g[at.problem_count]), show: (g) => make("td", {}, ...badges(g)) },
  ];

  function groupRows(group, index, columns) {
    const isOpen = opened.has(index);
    const name = make("button", { type: "button", class: "link open", "aria-expanded": String(isOpen) }, make("bdi", {}, group[at.name]));
    const row = make("tr", { class: "group", "data-group": index, onclick: () => toggle(index) }, make("th", { scope: "row", class: "name" }, name));
    for (const column of columns.slice(1)) row.append(column.show ? column.show(group) : cell(column.by(group)));
    return isOpen ? [row, make("tr", { class: "details", "data-of": index }, make("td", { colspan: columns.length }, panel(group, index)))] : [row];
  }
  function toggle(index) {
    const row = document.querySelector(`tr.group[data-group="${index}"]`);
    const hadFocus = document.activeElement && row && row.contains(document.activeElement);
    if (!opened.delete(index)) opened.add(index);
    groups.draw();
    if (hadFocus) document.querySelector(`tr.group[data-group="${index}"] button`).focus();
  }
  function headed(...labels) {
    const heads = labels.map((label) => make("th", { scope: "col", class: label.startsWith("#") ? "n" : null }, label.replace(/^#/, "")));
    return make("thead", {}, make("tr", {}, ...heads));
  }
  function panel(group, index) {
    const details = data.details[index], parts = [rounds(group)];
    if (!details) {
      const more = data.details.length ? `of the ${plural(data.details.length, "worst group")}` : "of no group";
      parts.push(make("div", {}, make("h4", {}, "Members and moves"), make("p", {}, `This page has members and moves ${more}; kassign-spark report --details N keeps more.`)));
      return make("div", { class: "panel" }, ...parts);
    }
    if (details.problems.length) {
      const rows = details.problems.map(([kind, place, detail]) => make("tr", {}, make("td", {}, kind), make("td", { class: "id" }, place), make("td", {}, detail)));
      parts.push(make("div", {}, make("h4", {}, "Problems"), make("table", {}, headed("Kind", "Where", "Detail"), make("tbody", {}, ...rows))));
    }
    if (details.why) parts.push(...why(details.why));
    else if (spread(group) > 1) parts.push(make("div", { class: "wide why" }, make("h4", {}, "Why it is uneven"), make("p", {}, "Not worked out here, as it takes long for groups so large: kassign-spark advise says why, and what would help.")));
    parts.push(members(details), moves(details, group));
    return make("div", { class: "panel" }, ...parts);
  }
  function rounds(g) {
    const row = (label, moved, paused, count, settles) => make("tr", {}, make("th", { scope: "row" }, label), cell(moved), cell(paused), make("td", { class: "n" }, settles === 0 ? "without end" : number(count)));
    const planned = g[at.protocol] === null ? "told by assign()" : g[at.protocol] ? "cooperative" : "eager", where = g[at.coordinator];
    const place = g[at.coordinator_partition] === null ? "" : `partition ${g[at.coordinator_partition]} of __consumer_offsets`;
    return make("div", {}, make("h4", {}, "Rounds and pauses by protocol"),
      make("table", {}, headed("Protocol", "#Moved", "#Paused", "#Rounds"), make("tbody", {},
        row(`as planned: ${data.assignors[g[at.assignor]] || "–"}, ${planned}`, g[at.moved], g[at.planned_paused], g[at.planned_rounds], g[at.planned_settles]),
        row("eager, the same assignor", g[at.eager_moved], g[at.eager_paused], g[at.eager_rounds]),
        row("cooperative-sticky, cooperative", g[at.cooperative_moved], g[at.cooperative_paused], g[at.cooperative_rounds], g[at.cooperative_settles]))),
      make("p", { class: "key" }, `Coordinator: ${where === null ? "broker not known" : `broker ${where}`}${place ? `, ${place}` : ""}. Mean load ${number(g[at.mean_assigned])} partitions.`));
  }
  /* Why a group is uneven, what would help, and who can take what. */
  function why(found) {
    const row = ([what, ...numbers]) => make("tr", {}, make("th", { scope: "row" }, what), ...numbers.map(cell));
    const rows = [["as it is", ...found.before, null, null, null], ...found.advice].map(row);
    const none = found.advice.length ? null : make("p", { class: "key" }, "Nothing that was tried would make it more even.");
    return [
      make("div", { class: "wide why" }, make("h4", {}, "Why it is uneven"), make("p", {}, `${found.reason}.`)),
      make("div", { class: "advice" }, make("h4", {}, "What would help"),
        make("table", {}, headed("Change", "#Largest load", "#Spread", "#Moved", "#Paused", "#Rounds"), make("tbody", {}, ...rows)), none),
      eligible(found),
    ];
  }
  const some = (names, count) => names.join(", ") + (count > names.length ? ` and ${number(count - names.length)} more` : "");
  function eligible({ rows, classes, more_rows: moreRows, more_classes: moreClasses }) {
    const LABEL = 250, CELL = 17, LINE = 13, TOP = 18;
    const draw = (tag, attributes, ...children) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
      element.append(...children);
      return element;
    };
    const marks = classes.map(([, , , dense], i) => draw("text", { x: LABEL + CELL * (i + 0.5), y: TOP - 6, "text-anchor": "middle", class: dense ? "dense" : "" }, String(i + 1)));
    rows.forEach(([names, count, dense, digits], i) => {
      const text = some(names, count), y = TOP + LINE * i, more = count > 1 ? ` +${number(count - 1)}` : "";
      const short = (names[0].length > 34 ? `${names[0].slice(0, 33)}…` : names[0]) + more;
      marks.push(draw("text", { x: LABEL - 6, y: y + LINE - 4, "text-anchor": "end", class: dense ? "dense" : "" }, short, draw("title", {}, text)));
      [...digits].forEach((digit, k) => {
        if (digit === "0") return;
        const box = { x: LABEL + CELL * k + 1, y: y + 1, width: CELL - 2, height: LINE - 2, class: dense && classes[k][3] ? "dense" : "can" };
        marks.push(draw("rect", box, draw("title", {}, `${text}: ${some(classes[k][0], classes[k][1])}`)));
      });
    });
    const width = LABEL + CELL * classes.length + 4, height = TOP + LINE * rows.length + 2;
    const said = `Who can take what: ${plural(rows.length, "kind")} of members, ${number(classes.length)} topic classes`;
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": said }, ...marks);
    const legend = classes.map(([names, count, partitions, dense], i) => make("tr", {}, make("th", { scope: "row", class: dense ? "n dense" : "n" }, number(i + 1)), make("td", { class: "id" }, some(names, count)), cell(partitions)));
    const left = [moreRows ? `${plural(moreRows, "more kind")} of members` : null, moreClasses ? `${number(moreClasses)} more classes` : null].filter(Boolean);
    return make("div", { class: "drawing" }, make("h4", {}, "Who can take what"),
      make("p", { class: "key" }, make("span", { class: "box dense" }), "dense part: nobody else can take these", make("span", { class: "box" }), "can take"),
      make("div", { class: "scroll" }, svg), left.length ? make("p", { class: "key" }, `${left.join(" and ")} not drawn.`) : null,
      make("table", {}, headed("#Class", "Topics", "#Partitions"), make("tbody", {}, ...legend)));
  }
  function members(details) {
    const most = Math.max(1, ...details.members.map(([, before, after]) => Math.max(before || 0, after)));
    const bar = (kind, value) => make("span", { class: `bar ${kind}`, style: `width:${(100 * value) / most}%` });
    const rows = details.members.map(([id, before, after, left]) => make("tr", {},
      make("th", { scope: "row", class: "id" }, id, left ? make("span", { class: "badge note" }, "has left") : null),
      cell(before), cell(after),
      make("td", { class: "bars", "aria-hidden": "true" }, before === null ? null : bar("before", before), bar("after", after))));
    const brief = rows.length > BRIEF ? make("p", { class: "key paper" }, `Of these ${plural(rows.length, "member")} the first ${BRIEF} are printed.`) : null;
    const more = details.more_members ? make("p", { class: "key" }, `${plural(details.more_members, "more member")}, nearer to the mean.`) : null;
    return make("div", { class: "wide" }, make("h4", {}, "Load of each member"),
      make("p", { class: "key" }, make("span", { class: "bar before" }), "before", make("span", { class: "bar" }), "after"),
      make("table", {}, headed("Member", "#Before", "#After", "Partitions"), make("tbody", {}, ...rows)), brief, more);
  }
  function moves(details, group) {
    const nobody = () => make("span", { class: "soft" }, "nobody");
    const rows = details.moves.map(([change, from, to, count, partitions]) => make("tr", {},
      make("td", {}, change), make("td", { class: "id" }, from === null ? nobody() : from), make("td", { class: "id" }, to === null ? nobody() : to),
      cell(count), make("td", { class: "id" }, partitions)));
    const brief = rows.length > BRIEF ? make("p", { class: "key paper" }, `Of these ${plural(rows.length, "pair")} of members the first ${BRIEF} are printed.`) : null;
    const more = details.more_moves ? make("p", { class: "key" }, `${plural(details.more_moves, "more pair")} of members with fewer partitions; kassign-spark diff has all.`) : null;
    const none = group[at.moved] === null ? "Not known: the snapshot has no table owned." : "Nothing changes hands.";
    return make("div", { class: "wide" }, make("h4", {}, "What moves from whom to whom"),
      rows.length ? make("table", {}, headed("Change", "From", "To", "#Count", "Partitions"), make("tbody", {}, ...rows)) : make("p", { class: "key" }, none), brief, more);
  }

  const groups = bigTable({
    id: "group", noun: "group", columns: groupColumns, rows: data.groups, text: (g) => g[at.name], after: groupRows,
    keep: (g) => (assignor.value === "" || g[at.assignor] === Number(assignor.value)) && (only.value === "" || tests[only.value](g)),
  });
  groups.draw();
  assignor.addEventListener("change", groups.reset);
  only.addEventListener("change", groups.reset);
  document.querySelectorAll("[data-only]").forEach((button) => button.addEventListener("click", () => {
    only.value = button.dataset.only;
    assignor.value = "";
    document.getElementById("group-search").value = "";
    groups.reset();
    document.getElementById("groups").scrollIntoView();
  }));

  /* The problems. */
  const kind = document.getElementById("problem-kind");
  if (kind) {
    [...new Set(data.problems.map((row) => row[1]))].forEach((name) => kind.append(make("option", { value: name }, name)));
    const labels = ["In", "Kind", "Group", "Member", "Topic", "Partition", "Detail"];
    const columns = labels.map((label, i) => ({ label, text: i !== 5, by: (row) => row[i] }));
    const problems = bigTable({
      id: "problem", noun: "problem", columns, rows: data.problems, text: (row) => row.join(" "),
      keep: (row) => kind.value === "" || row[1] === kind.value,
      after: (row) => [make("tr", {}, ...row.map((value, i) => (i === 5 ? cell(value) : make("td", { class: i === 3 ? "id" : null }, value))))],
    });
    problems.draw();
    kind.addEventListener("change", problems.reset);
  }

  /* The plots tell their values where the pointer is. */
  const tooltip = document.getElementById("tooltip");
  document.querySelectorAll("figure svg").forEach((svg) => {
    svg.addEventListener("pointermove", (event) => {
      const mark = event.target.closest(".mark-rect [aria-label], .mark-symbol [aria-label], .mark-rule [aria-label]");
      tooltip.hidden = !mark;
      if (!mark) return;
      tooltip.textContent = mark.getAttribute("aria-label");
      tooltip.style.left = `${Math.min(event.clientX + 12, window.innerWidth - tooltip.offsetWidth - 8)}px`;
      tooltip.style.top = `${event.clientY + 14}px`;
    });
    svg.addEventListener("pointerleave", () => { tooltip.hidden = true; });
  });

  /* On paper: more rows, and the worst groups open in brief unless the reader has opened some. */
  let before = null;
  window.addEventListener("beforeprint", () => {
    if (before) return;
    before = { size: groups.state.size, page: groups.state.page, opened: [...opened] };
    if (groups.state.page === 0) groups.state.size = PRINTED;
    if (!opened.size) {
      groups.found().slice(0, PRINTED_OPEN).filter((i) => data.details[i]).forEach((i) => opened.add(i));
      document.body.classList.add("brief");
    }
    groups.draw();
  });
  window.addEventListener("afterprint", () => {
    if (!before) return;
    Object.assign(groups.state, { size: before.size, page: before.page });
    document.body.classList.remove("brief");
    opened.clear();
    before.opened.forEach((i) => opened.add(i));
    before = null;
    groups.draw();
  });
})();
