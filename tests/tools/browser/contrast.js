(() => {
  const channels = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).slice(0, 3).map((c) => {
      c /= 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      const alpha = channels(colour)[3];
      if (alpha === undefined || alpha === 1) return colour;
      if (alpha !== 0) throw new Error("a ground that is half transparent is not measured: " + colour);
    }
    return "rgb(255, 255, 255)";
  };
  let texts = 0;
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim();
    const element = walker.currentNode.parentElement;
    if (text === "" || !element.checkVisibility()) continue;
    texts++;
    const style = getComputedStyle(element);
    const colour = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [luminance(colour), luminance(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (!(ratio >= 4.5)) faint.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}, want 4.5`);
  }
  return { texts, faint };
})()
