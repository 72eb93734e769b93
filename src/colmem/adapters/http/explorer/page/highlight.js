// Which words of a text are marked: those that begin like a word of the query, up to its ending.
// The engine's analyser is finer; this is for the eye only.

const SPACELESS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Hangul}]/u;
const WORD = /[\p{L}\p{N}]+/gu;
const ENDINGS = [/(?:ies|es|(?<!s)s)$/, /(?:ied|ing|edly|ed|ly|ment|e|y)$/];
const STEM_CHARS_MIN = 3;
const COMMON = new Set(("a an and are as at be by did do does for from had has have he her his how i in is it its of "
  + "on or she that the their they this to was we were what when where which who why will with you").split(" "));

const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

function stem(word) {
  for (const ending of ENDINGS) {
    const short = word.replace(ending, "");
    if (short.length >= STEM_CHARS_MIN) word = short;
  }
  return word;
}

/** What to look for, read from a query. */
export function termsOf(query) {
  const words = [...query.matchAll(WORD)].map(([word]) => word);
  const plain = words.filter((word) => !SPACELESS.test(word)).map(folded);
  const telling = plain.filter((word) => !COMMON.has(word));
  const joined = words.filter((word) => SPACELESS.test(word)).flatMap((word) => {
    const signs = [...word];
    return signs.length < 2 ? [word] : signs.slice(1).map((sign, place) => signs[place] + sign);
  });
  return { stems: new Set((telling.length ? telling : plain).map(stem)), pairs: new Set(joined) };
}

/** The places of a text to mark, as [start, end) in order, not overlapping. */
export function placesOf(text, terms) {
  const places = [];
  for (const match of text.matchAll(WORD)) {
    const word = match[0];
    if (SPACELESS.test(word)) {
      for (const pair of terms.pairs) {
        for (let at = word.indexOf(pair); at >= 0; at = word.indexOf(pair, at + 1)) {
          places.push([match.index + at, match.index + at + pair.length]);
        }
      }
    } else if (terms.stems.has(stem(folded(word)))) {
      places.push([match.index, match.index + word.length]);
    }
  }
  places.sort((a, b) => a[0] - b[0]);
  const joined = [];
  for (const [start, end] of places) {
    const last = joined.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else joined.push([start, end]);
  }
  return joined;
}

/** A text as nodes, with its places marked. */
export function marked(text, terms) {
  const nodes = [];
  let done = 0;
  for (const [start, end] of placesOf(text, terms)) {
    nodes.push(text.slice(done, start));
    const mark = document.createElement("mark");
    mark.textContent = text.slice(start, end);
    nodes.push(mark);
    done = end;
  }
  nodes.push(text.slice(done));
  return nodes;
}

/** The part of a text, of about so many characters, with the most places to mark. */
export function excerpt(text, terms, chars = 320) {
  if (text.length <= chars) return text;
  const places = placesOf(text, terms);
  let best = 0;
  let most = 0;
  places.forEach(([start], first) => {
    const inside = places.slice(first).filter(([, end]) => end <= start + chars * 0.75).length;
    if (inside > most) [most, best] = [inside, start];
  });
  let from = Math.max(0, best - Math.round(chars / 8));
  if (from > 0) from = Math.max(text.indexOf(" ", from) + 1, from <= best ? 0 : from) || from;
  if (from > best) from = best;
  let to = Math.min(text.length, from + chars);
  const space = text.lastIndexOf(" ", to);
  if (to < text.length && space > from + chars / 2) to = space;
  return (from > 0 ? "… " : "") + text.slice(from, to).trim() + (to < text.length ? " …" : "");
}
