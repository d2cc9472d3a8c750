/** Leave the page as someone who is not logged in: it is loaded anew, so that nothing of before stays in it. */
export function leave(): void {
  location.assign(document.baseURI);
}
