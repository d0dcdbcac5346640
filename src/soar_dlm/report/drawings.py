"""Figures inside a page: SVG that draws and does nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from soar_dlm.errors import SettingsError

SVG = "http://www.w3.org/2000/svg"
DRAWN = frozenset(
    ["svg", "g", "defs", "symbol", "use", "clipPath", "mask", "pattern", "marker", "title", "desc", "text", "tspan"]
    + ["path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "linearGradient", "radialGradient", "stop"]
)
LEFT_OUT = frozenset(["metadata", "style"])
"""What programs that draw add for others."""


@dataclass(frozen=True)
class Drawing:
    """A figure of a report: a ``name`` that no other has, a ``caption``, and the ``svg``.

    A page allows no style sheets but its own: what an SVG sets in ``style`` attributes becomes attributes, and style
    elements are left out. ``currentColor`` is the page's ink on a light card.
    """

    name: str
    caption: str
    svg: str

    @property
    def slug(self) -> str:
        """The name as a part of ids."""
        return re.sub(r"\W+", "-", self.name)


def markup(drawing: Drawing) -> str:
    """The SVG as markup for a page: only elements that draw, no references to outside, ids of its own."""
    try:
        root = ElementTree.fromstring(drawing.svg)
    except ElementTree.ParseError as error:
        raise SettingsError(f"The figure {drawing.name!r} is not SVG: {error}.") from error
    if _local(root.tag) != "svg":
        raise SettingsError(f"The figure {drawing.name!r} is not SVG.")
    clean = _clean(root, drawing.slug, drawing.name)
    width, height = root.get("width", ""), root.get("height", "")
    if "viewBox" not in clean.attrib and width and height:
        clean.set("viewBox", f"0 0 {_number(width)} {_number(height)}")
    for name in ("width", "height"):
        clean.attrib.pop(name, None)
    clean.attrib.update({"role": "img", "aria-label": drawing.caption})
    return ElementTree.tostring(clean, encoding="unicode", short_empty_elements=False)


def _clean(element: ElementTree.Element, prefix: str, name: str) -> ElementTree.Element:
    tag = _local(element.tag)
    if tag not in DRAWN:
        raise SettingsError(f"The figure {name!r} has an element {tag!r}, which a report cannot show.")
    made = ElementTree.Element(tag, dict(_attributes(element, prefix)))
    made.text, made.tail = element.text, element.tail
    for child in element:
        if isinstance(child.tag, str) and _local(child.tag) not in LEFT_OUT:
            made.append(_clean(child, prefix, name))
    return made


def _attributes(element: ElementTree.Element, prefix: str) -> Iterator[tuple[str, str]]:
    """The attributes that draw, those of a style among them; ids and references to them get the prefix."""
    for full, value in element.attrib.items():
        key = _local(full)
        if key == "style":
            for part in value.split(";"):
                one, _, setting = part.partition(":")
                if setting:
                    yield one.strip(), _own(setting.strip(), prefix)
        elif key == "id":
            yield key, f"{prefix}-{value}"
        elif key == "href":
            if value.startswith("#"):
                yield key, f"#{prefix}-{value[1:]}"
        elif not key.startswith("on") and (full == key or full.startswith(f"{{{SVG}}}")):
            yield key, _own(value, prefix)


def _own(value: str, prefix: str) -> str:
    """A value whose references, such as ``url(#clip)``, are those of this drawing; any other reference is none."""
    value = re.sub(r"url\(\s*['\"]?#([^)'\"]+)['\"]?\s*\)", rf"url(#{prefix}-\1)", value)
    return value if "url(" not in value.replace("url(#", "") else "none"


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _number(length: str) -> str:
    found = re.match(r"[\d.]+", length)
    return found[0] if found else "0"
