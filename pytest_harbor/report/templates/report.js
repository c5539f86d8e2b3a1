// Filters, sorts, and lays out what lies packed in the page when somebody opens it.
// Text only ever becomes text nodes. Rows, steps and reasons are there without this script.
(() => {
  "use strict";

  const list = document.getElementById("list");
  const rows = [...list.children];
  const searched = new Map(rows.map((row) => [row, row.dataset.search.toLowerCase()]));
  const input = document.getElementById("filter");
  const buttons = [...document.querySelectorAll("[data-verdict][aria-pressed]")];
  const shown = document.querySelector(".shown");
  const none = document.querySelector(".none");

  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // --- filter and order

  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const on = new Set(
      buttons.filter((b) => b.getAttribute("aria-pressed") === "true").map((b) => b.dataset.verdict)
    );
    let count = 0;
    for (const row of rows) {
      const match = on.has(row.dataset.verdict) && words.every((w) => searched.get(row).includes(w));
      row.hidden = !match;
      count += match;
    }
    shown.textContent = count === rows.length ? `${count} episodes` : `${count} of ${rows.length} episodes`;
    none.hidden = count > 0;
  };

  const grave = ["error", "failed", "xfailed", "skipped", "passed"];
  const value = (row, key) => (key === "verdict" ? grave.indexOf(row.dataset[key]) : Number(row.dataset[key]));

  const sort = (button) => {
    const key = button.dataset.sort;
    const again = button.getAttribute("aria-sort") === "ascending";
    for (const each of document.querySelectorAll("[data-sort]")) each.removeAttribute("aria-sort");
    button.setAttribute("aria-sort", again ? "descending" : "ascending");
    const sign = again ? -1 : 1;
    rows.sort((a, b) => sign * (value(a, key) - value(b, key)) || a.dataset.order - b.dataset.order);
    list.append(...rows);
  };

  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      filter();
    });
  }
  for (const button of document.querySelectorAll("[data-sort]")) {
    button.addEventListener("click", () => sort(button));
  }
  input.addEventListener("input", filter);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      input.focus();
    } else if (event.key === "Escape" && document.activeElement === input) {
      input.value = "";
      filter();
    }
  });
  document.querySelector(".tools").hidden = false;
  filter();

  // --- logs, unpacked when they are opened

  const unpack = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };

  const pre = (text, className) => {
    const element = make("pre", className, text);
    element.tabIndex = 0;
    return element;
  };

  const folded = (title, text) => {
    const details = make("details", "think");
    details.append(make("summary", "", title), make("div", "words", text));
    return details;
  };

  const talk = (call) => {
    const block = make("div", "talk");
    const question = call.args.map((pair) => pair[1]).join("\n");
    block.append(make("p", "to", "asks the user"), make("div", "words", question));
    for (const reply of call.results) {
      const answer = make("div", "reply");
      answer.append(make("p", "to", "the user answers"), make("div", "words", reply));
      block.append(answer);
    }
    return block;
  };

  const tool = (call) => {
    const block = make("div", "call");
    block.append(make("p", "name", call.name));
    const args = make("div", "args");
    for (const [label, text] of call.args) {
      args.append(make("span", "label", label), pre(text));
    }
    if (call.args.length) block.append(args);
    for (const text of call.results) if (text) block.append(pre(text, "result"));
    return block;
  };

  const message = (each) => {
    if (each.gap) return make("p", "gap", each.gap);
    // ATIF's "user" is whoever gave the instruction; the simulated user speaks through a tool.
    const who = { user: "prompt", system: "system" }[each.who] || "agent";
    const article = make("article", who);
    const side = make("p", "who", who);
    if (each.at) side.append(make("span", "at", each.at));
    const words = make("div", "said");
    if (each.think) words.append(folded("Thinking", each.think));
    if (each.text) words.append(make("div", "words", each.text));
    for (const call of each.calls || []) words.append(call.talk ? talk(call) : tool(call));
    for (const text of each.results || []) if (text) words.append(pre(text, "result"));
    if (each.note) words.append(make("p", "note", each.note));
    article.append(side, words);
    return article;
  };

  const fill = async (details, kind, packed) => {
    const content = details.querySelector(":scope > .content");
    try {
      const data = await unpack(packed);
      if (kind === "chat") {
        const chat = make("div", "chat");
        chat.append(...data.messages.map(message));
        content.prepend(chat);
      } else {
        content.prepend(data.text ? pre(data.text, "text") : make("p", "quiet", "It is empty."));
      }
    } catch (error) {
      content.prepend(make("p", "quiet", `This browser cannot unpack it (${error}).`));
    }
  };

  const link = (text, href) => {
    const anchor = make("a", "", text);
    anchor.href = href;
    return anchor;
  };

  const log = (each, script) => {
    if (!each.here) {
      const line = make("p", "log linked");
      line.append(link(each.title, each.link), make("span", "quiet", ` ${each.note}, in its own file`));
      return line;
    }
    const details = make("details", "log");
    const summary = make("summary", "", `${each.title} `);
    summary.append(make("span", "quiet", each.note));
    const content = make("div", "content");
    const file = make("p", "file");
    file.append(link("Open the file", each.link));
    content.append(file);
    details.append(summary, content);
    details.addEventListener("toggle", () => fill(details, each.kind, script.textContent), { once: true });
    if (each.opened) details.dataset.auto = "";
    return details;
  };

  const facts = (rows) => {
    const list = make("dl", "facts");
    for (const fact of rows) {
      const row = make("div");
      const value = make("dd");
      const tag = fact.code ? "code" : "span";
      if (fact.text) value.append(make(tag, "", fact.text));
      if (fact.items.length) {
        const items = make("ul");
        for (const item of fact.items) {
          const line = make("li");
          line.append(make(tag, "", item));
          items.append(line);
        }
        value.append(items);
      }
      row.append(make("dt", "", fact.label), value);
      list.append(row);
    }
    return list;
  };

  const layOut = async (episode) => {
    const packed = episode.querySelector("script.details");
    if (!packed || packed.dataset.done) return;
    packed.dataset.done = "1";
    const parts = await unpack(packed.textContent);
    episode.querySelectorAll(".body").forEach((body, index) => {
      const scripts = [...body.querySelectorAll(":scope > script")];
      body.append(...parts[index].logs.map((each) => log(each, each.here ? scripts.shift() : null)));
      body.append(facts(parts[index].facts));
    });
    for (const each of episode.querySelectorAll(".step[open] [data-auto], .only [data-auto]")) each.open = true;
  };

  document.addEventListener(
    "toggle",
    (event) => {
      const details = event.target;
      if (!details.open) return;
      if (details.classList.contains("episode")) layOut(details);
      if (details.classList.contains("step")) {
        for (const each of details.querySelectorAll("[data-auto]")) each.open = true;
      }
    },
    true
  );

  // --- links to an episode: report.html#name

  const visit = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || !target.classList.contains("episode")) return;
    target.open = true;
    target.scrollIntoView();
    target.querySelector("summary").focus();
  };
  window.addEventListener("hashchange", visit);
  visit();
})();
