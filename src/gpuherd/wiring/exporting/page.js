"use strict";
(() => {
  const page = document.documentElement.dataset;
  const written = Date.parse(document.getElementById("written").dateTime);
  const age = document.getElementById("age");
  const told = (seconds) => seconds < 90 ? `${seconds} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min`
    : seconds < 129600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
  const tell = () => {
    const seconds = Math.max(0, Math.round((Date.now() - written) / 1000));
    const isOld = seconds > Number(page.oldAfter);
    age.textContent = `This page is ${told(seconds)} old` + (isOld ? ": what it says may no longer be true." : ".");
    age.className = isOld ? "old" : "";
  };
  tell();
  setInterval(tell, 5000);
  if (page.reload) setInterval(() => {
    if (!document.querySelector("details[open]")) location.reload();
  }, 1000 * Number(page.reload));
})();
