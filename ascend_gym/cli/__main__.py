"""``python -m ascend_gym.cli``."""

from ascend_gym.cli import main

if __name__ == "__main__":
    main()
