"""The prices that are older than a year, as the text of an issue; nothing where there are none.

    python -m benchmarks.old_prices [DATE]

A workflow runs it every month. Any date may take the place of the present one.
"""

from __future__ import annotations

import datetime

from starvelab.model.analysis.prices import Price, listed_prices, part_prices, price_age

from .report import options


def old_prices(today: datetime.date | None = None) -> list[Price]:
    """The prices that are older than a year, on the day that is given or on the present one."""
    before = (today or datetime.date.today()) - datetime.timedelta(days=366)
    return [price for price in (*listed_prices(), *part_prices().values()) if price.date < before]


def main(arguments: list[str] | None = None) -> None:
    parser = options("List the prices that are older than a year.")
    parser.add_argument("date", nargs="?", type=datetime.date.fromisoformat, help="in place of today")
    today = parser.parse_args(arguments).date
    prices = old_prices(today)
    if not prices:
        return
    print('These prices are older than a year. "Update the prices" in CONTRIBUTING.md says what to do.\n')
    for price in prices:
        print(f"- {price.of}, {price.seller}, {price_age(price.date, today)}: {price.source}")


if __name__ == "__main__":
    main()
