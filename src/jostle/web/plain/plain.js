// A page for an installation without the built one: login, and what the API says of cards and jobs, as text.
const at = (id) => document.getElementById(id);
const say = (text) => { at("said").textContent = text; };

async function login(password) {
  const answer = await fetch("/api/auth/login", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ password }),
  });
  const told = await answer.json();
  say(told.success ? "" : told.message || told.detail);
  if (told.success) sessionStorage.setItem("jostle-key", told.key);
  return Boolean(told.success);
}

async function look() {
  const heads = { "X-Jostle-Key": sessionStorage.getItem("jostle-key") || "" };
  const parts = await Promise.all(["gpus", "ps"].map((verb) => fetch(`/api/v1/${verb}`, { headers: heads })));
  const known = parts.every((part) => part.ok);
  at("login").hidden = known;
  at("shown").textContent = known ? JSON.stringify(await Promise.all(parts.map((part) => part.json())), null, 1) : "";
}

at("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (await login(at("password").value)) await look();
});

const code = new URLSearchParams(location.hash.slice(1)).get("code");
if (code) {
  history.replaceState(null, "", location.pathname);
  login(code).then(look);
} else {
  look();
}
